"""Asynchronous calls that only copy: their annotations are not to be kept."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


def computation(name: str, *steps: str) -> str:
    """Steps one after the other, each with the one before in place of `@`."""
    lines = [f"{name}0 = f32[8] parameter(0)"]
    for number, step in enumerate(steps):
        lines.append(f"{name}{number + 1} = {step.replace('@', f'{name}{number}')}")
    *before, root = lines
    return f"{name} {{\n" + "\n".join((*before, f"ROOT {root}")) + "\n}\n"


def asynchronous(callee: str) -> tuple[str, str]:
    return f"((f32[8]), f32[8]) async-start(@), calls={callee}", "f32[8] async-done(@)"


def keeps(*callees: str) -> bool:
    """Whether an async-start and -done around `a` stay in their group."""
    start, done = asynchronous("a")
    group = 'frontend_attributes={_scheduling_group_id="1"}'
    entry = computation("e", f"{start}, {group}", f"{done}, {group}")
    module = parse_module(f"HloModule m\n{''.join(callees)}ENTRY {entry}")
    options = {"keep_sync_annotation": False}
    create_pass("legalize-scheduling-annotations", options).run(module, PassContext())
    groups = {group_of(i) for i in module.entry.instructions if i.operands}
    assert len(groups) == 1
    return groups == {1}


COPY, WORK = "f32[8] copy(@)", "f32[8] negate(@)"


@pytest.mark.parametrize(("step", "stays"), [(COPY, False), (WORK, True)])
def test_by_what_it_wraps(step: str, *, stays: bool) -> None:
    assert keeps(computation("a", step)) == stays
    assert keeps(computation("a", COPY, step)) == stays
    assert keeps(computation("a", step, COPY)) == stays


@pytest.mark.parametrize(("step", "stays"), [(COPY, False), (WORK, True)])
@pytest.mark.parametrize("call", ["call(@), to_apply=b", "fusion(@), kind=kLoop, calls=b"])
def test_by_what_its_root_calls(call: str, step: str, *, stays: bool) -> None:
    assert keeps(computation("b", step), computation("a", f"f32[8] {call}")) == stays


def test_a_call_before_the_root_is_work() -> None:
    inside = computation("b", COPY)
    assert keeps(inside, computation("a", "f32[8] call(@), to_apply=b", COPY))


@pytest.mark.parametrize(("step", "stays"), [(COPY, False), (WORK, True)])
def test_by_what_is_wrapped_in_it(step: str, *, stays: bool) -> None:
    """At any depth, through a call each time."""
    called = computation("d", step)
    wrapped = computation("c", "f32[8] call(@), to_apply=d")
    nested = computation("b", *asynchronous("c"))
    assert keeps(called, wrapped, nested, computation("a", "f32[8] call(@), to_apply=b")) == stays
    assert keeps(computation("c", step), computation("a", COPY, *asynchronous("c"), COPY)) == stays


def test_through_one_call_only() -> None:
    deep = computation("c", COPY), computation("b", "f32[8] call(@), to_apply=c")
    assert keeps(*deep, computation("a", "f32[8] call(@), to_apply=b"))


def test_deep_nesting_is_looked_at_once() -> None:
    """With each start and its done on its own there were 2¹⁰⁰ looks."""
    names = [f"w{n}x" for n in range(100)]
    nested = [computation(name, *asynchronous(inner)) for inner, name in pairwise(names)]
    around = computation("a", *asynchronous(names[-1]))
    assert not keeps(computation(names[0], COPY), *nested, around)
