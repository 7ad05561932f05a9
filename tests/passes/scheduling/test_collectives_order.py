"""The one order in which collectives run, and what keeps it."""

from __future__ import annotations

import pytest

from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "collectives-schedule-linearizer"
SUM = """sum { sum.a = f32[] parameter(0) sum.b = f32[] parameter(1)
  ROOT sum.c = f32[] add(sum.a, sum.b) }
"""


def program(*lines: str, callees: str = "", is_scheduled: bool = False) -> str:
    head = f"HloModule m, replica_count=2{', is_scheduled=true' if is_scheduled else ''}"
    body = "\n  ".join(("p = f32[8] parameter(0)", "q = f32[8] parameter(1)", *lines))
    return f"{head}\n{SUM}{callees}ENTRY e {{\n  {body}\n}}"


def reduce(name: str, operand: str = "p") -> str:
    return f"{name} = f32[8] all-reduce({operand}), to_apply=sum"


def both(name: str, operand: str = "p") -> tuple[str, str]:
    """A start and its done."""
    start = f"{name} = f32[8] all-reduce-start({operand}), to_apply=sum"
    return start, f"{name}.d = f32[8] all-reduce-done({name})"


def waits(module: Module) -> dict[str, str]:
    return {
        i.name: " ".join(before.name for before in i.control_predecessors)
        for i in module.instructions()
        if i.control_predecessors
    }


def after(text: str) -> dict[str, str]:
    module, context = parse_module(text), PassContext()
    changed = create_pass(NAME).run(module, context)
    found = waits(module)
    assert changed == bool(found)
    assert context.statistics.get("collectives ordered", 0) == sum(
        len(before.split()) for before in found.values()
    )
    return found


def tuple_of(*names: str) -> str:
    return f"ROOT r = ({', '.join(['f32[8]'] * len(names))}) tuple({', '.join(names)})"


def test_each_collective_waits_for_the_one_before_in_post_order() -> None:
    text = program(reduce("a"), reduce("b"), reduce("c"), tuple_of("c", "a", "b"))
    assert after(text) == {"a": "c", "b": "a"}


def test_a_schedule_has_the_say_over_the_order() -> None:
    text = program(
        reduce("a"), reduce("b"), reduce("c"), tuple_of("c", "a", "b"), is_scheduled=True
    )
    assert after(text) == {"b": "a", "c": "b"}


def test_what_operands_order_already_gets_no_dependency() -> None:
    """In between new dependencies count, too."""
    text = program(
        reduce("a"), "n = f32[8] negate(a)", reduce("b", "n"), reduce("c"), tuple_of("b", "c")
    )
    assert after(text) == {"c": "b"}


def test_one_collective_alone_waits_for_none() -> None:
    assert after(program(reduce("a"), tuple_of("a"))) == {}


@pytest.mark.parametrize(
    "call",
    [
        "f32[16] all-gather(p), dimensions={0}",
        "f32[8] all-to-all(p), dimensions={0}",
        "f32[4] reduce-scatter(p), dimensions={0}, to_apply=sum",
        "f32[8] collective-permute(p), source_target_pairs={{0,1}}",
        "f32[8] collective-broadcast(p), replica_groups={{0,1}}",
    ],
)
def test_every_kind_of_collective_has_its_place(call: str) -> None:
    root = "ROOT r = tuple(a, x, c)"
    found = after(program(reduce("a"), f"x = {call}", reduce("c"), root, is_scheduled=True))
    assert found == {"x": "a", "c": "x"}


@pytest.mark.parametrize("call", ["f32[8] negate(p)", "f32[8] copy(p)"])
def test_other_work_has_none(call: str) -> None:
    root = "ROOT r = tuple(a, x, c)"
    found = after(program(reduce("a"), f"x = {call}", reduce("c"), root, is_scheduled=True))
    assert found == {"c": "a"}


def test_the_next_one_begins_when_an_asynchronous_one_is_done() -> None:
    text = program(
        *both("a"), *both("b"), reduce("c"), tuple_of("a.d", "b.d", "c"), is_scheduled=True
    )
    assert after(text) == {"b": "a.d", "c": "b.d"}


def test_generic_starts_count_by_what_they_wrap() -> None:
    callees = """w { w.x = f32[8] parameter(0) ROOT w.y = f32[8] all-to-all(w.x), dimensions={0} }
n { n.x = f32[8] parameter(0) ROOT n.y = f32[8] negate(n.x) }
"""
    lines = (
        "s = ((f32[8]), f32[8]) async-start(p), calls=w",
        "s.d = f32[8] async-done(s)",
        "t = ((f32[8]), f32[8]) async-start(p), calls=n",
        "t.d = f32[8] async-done(t)",
        reduce("c"),
        tuple_of("s.d", "t.d", "c"),
    )
    assert after(program(*lines, callees=callees, is_scheduled=True)) == {"c": "s.d"}


def test_a_start_that_nothing_waits_for_ends_itself() -> None:
    text = program(both("a")[0], reduce("c"), tuple_of("c"), is_scheduled=True)
    assert after(text) == {"c": "a"}


def test_operations_that_a_schedule_has_under_way_together_are_not_ordered() -> None:
    (a, a_done), (b, b_done) = both("a"), both("b")
    text = program(
        a, b, a_done, b_done, reduce("c"), tuple_of("a.d", "b.d", "c"), is_scheduled=True
    )
    module, context = parse_module(text), PassContext(NAME)
    create_pass(NAME).run(module, context)
    assert waits(module) == {"c": "b.d"}
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        ("missed", "b", "the schedule has it before %a.d"),
        ("applied", "c", "waits for %b.d"),
    ]


def test_callers_of_collectives_count_as_these() -> None:
    callees = """busy { busy.x = f32[8] parameter(0)
  ROOT busy.y = f32[8] all-reduce(busy.x), to_apply=sum }
outer { outer.x = f32[8] parameter(0) ROOT outer.y = f32[8] call(outer.x), to_apply=busy }
quiet { quiet.x = f32[8] parameter(0) ROOT quiet.y = f32[8] negate(quiet.x) }
"""
    lines = (
        reduce("a"),
        "x = f32[8] call(p), to_apply=outer",
        "y = f32[8] call(p), to_apply=quiet",
        reduce("c"),
        tuple_of("a", "x", "y", "c"),
    )
    assert after(program(*lines, callees=callees, is_scheduled=True)) == {"x": "a", "c": "x"}


def test_collectives_are_ordered_in_every_computation_but_those_that_are_wrapped() -> None:
    inside = f"""f {{ f.p = f32[8] parameter(0)
  {reduce("f.a", "f.p")}
  {reduce("f.b", "f.p")}
  ROOT f.r = f32[8] add(f.a, f.b) }}
"""
    called = program("ROOT r = f32[8] call(p), to_apply=f", callees=inside)
    assert after(called) == {"f.b": "f.a"}
    lines = ("s = ((f32[8]), f32[8]) async-start(p), calls=f", "ROOT r = f32[8] async-done(s)")
    assert after(program(*lines, callees=inside)) == {}
