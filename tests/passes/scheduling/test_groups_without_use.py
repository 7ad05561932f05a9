"""Groups that legalize-scheduling-annotations removes: those of lone members, or of nothing but
synchronous work."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

GROUP = 'frontend_attributes={_scheduling_group_id="1"}'
START = f"s = (f32[8], f32[16]) all-gather-start(p), dimensions={{0}}, {GROUP}"
GATHER = f"{START} d = f32[16] all-gather-done(s), {GROUP}"


def members(body: str, **options: Any) -> list[str]:
    """The annotated instructions afterwards; `in` is one of another computation."""
    module = parse_module(
        "HloModule m\n"
        "add { l = f32[] parameter(0) r = f32[] parameter(1) ROOT t = f32[] add(l, r) }\n"
        "run { y = f32[8] parameter(0) ROOT z = f32[8] negate(y) }\n"
        "copies { u = f32[8] parameter(0) ROOT v = f32[8] copy(u) }\n"
        f"other {{ x = f32[8] parameter(0) ROOT in = f32[8] negate(x), {GROUP} }}\n"
        f"ENTRY e {{ p = f32[8] parameter(0) {body} ROOT n = f32[8] sine(p) }}"
    )
    create_pass("legalize-scheduling-annotations", options).run(module, PassContext())
    names = [i.name for i in module.instructions() if group_of(i) == 1]
    return [name for name in names if name not in ("z", "v")]  # wrapped, so annotated as its start


@pytest.mark.parametrize(
    ("call", "stays"),
    [
        ("f32[8] negate(p)", False),
        ("f32[8] all-to-all(p), dimensions={0}", False),
        ("f32[16] all-gather(p), dimensions={0}", True),
        ("f32[8] all-reduce(p), to_apply=add", True),
        ("f32[4] reduce-scatter(p), dimensions={0}, to_apply=add", True),
        ("f32[8] collective-permute(p), source_target_pairs={{0,1}}", True),
        ("(f32[8], f32[16]) all-gather-start(p), dimensions={0}", True),
        ("(f32[8], f32[8], u32[]) copy-start(p)", False),
    ],
)
@pytest.mark.parametrize("more", ["", f"m = f32[8] cosine(p), {GROUP}"])
def test_a_group_needs_something_asynchronous(call: str, more: str, *, stays: bool) -> None:
    """The number of members does not count, here and in other computations."""
    found = members(f"a = {call}, {GROUP} {more}")
    assert found == (["in", "a", *(["m"] if more else [])] if stays else [])


@pytest.mark.parametrize(("callee", "stays"), [("run", True), ("copies", False)])
@pytest.mark.parametrize("keep_start", [False, True])
def test_a_call_that_only_copies_is_nothing_asynchronous(
    callee: str, *, stays: bool, keep_start: bool
) -> None:
    """A start counts even where its annotation is kept as if it were synchronous."""
    start = f"g = ((f32[8]), f32[8]) async-start(p), calls={callee}, {GROUP}"
    found = members(f"{start} h = f32[8] async-done(g)", keep_start_annotation=keep_start)
    assert found == (["in", "g"] if stays else [])


def only(*names: str) -> Any:
    return lambda instruction: instruction.name in names


@pytest.mark.parametrize(
    ("body", "keep", "left"),
    [
        (GATHER, False, ["s", "d"]),
        (GATHER, only("in"), ["in", "s", "d"]),
        (START, False, []),
        (START, True, ["in", "s"]),
        (START, only("s"), ["s"]),
        (START, only("in"), []),
    ],
    ids=["another part", "another, kept", "all", "none", "start kept", "start not kept"],
)
def test_a_member_alone_in_its_computation_goes_asynchronous_or_not(
    body: str, keep: Any, left: list[str]
) -> None:
    """An annotation that goes does not count as asynchronous for the rest."""
    assert members(body, keep_trivial_sync_annotation=keep) == left
