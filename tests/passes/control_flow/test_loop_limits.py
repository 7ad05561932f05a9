"""Loops that could be simplified but may not, and in what order it is done."""

from __future__ import annotations

import pytest
from tests.passes.control_flow.test_loop_state import (
    FIVE,
    NOTHING,
    THREE_TRIPS,
    WORKS,
    loop_in,
    said,
    simplified,
    text_of,
    value_of,
)

from hloopt.ir import Opcode

UPDATES = (
    "k = f32[1] constant({7}); a = f32[4] dynamic-update-slice(p1, k, p0); "
    "b = f32[4] dynamic-update-slice(p2, k, p0); next, a, b"
)
CONSTANTS = "half = f32[] constant(0.5)\n  five = s32[] constant(5)\n  zero = s32"


def with_constants(text: str) -> str:
    return text.replace("zero = s32", CONSTANTS)


TEXTS = {
    "merged with equal ones": text_of("s32[]; f32[4]; f32[4]", UPDATES, starts="zero, s.1, s.1"),
    "handed on alike": text_of(
        "s32[]; f32[4]; f32[4]; f32[4]", "n = f32[4] add(p1, p2); m = f32[4] add(p3, n); "
        "next, p1, p2, m", starts="zero, s.1, s.1, s.3",
    ),
    "nested": text_of(
        "s32[]; (f32[4], f32[4])", "x = f32[4] get-tuple-element(p1), index=0; "
        "y = f32[4] negate(x); b = (f32[4], f32[4]) tuple(y, x); next, b",
    ),
    "unused": text_of(FIVE, WORKS, entry=NOTHING),
    "constant": with_constants(
        text_of("s32[]; s32[]; s32[]", "k = s32[] constant(5); a = s32[] multiply(p2, p1); "
                "next, k, a", starts="zero, five, s.2")
    ),
    "constants": with_constants(
        text_of("s32[]; f32[]; f32[]", "x = f32[] add(p2, p1); next, p1, x",
                starts="zero, half, s.2")
    ),
    "counters": text_of("s32[]; s32[]", "a = s32[] add(p1, one); next, a"),
}  # fmt: skip
DONE = {
    "merged with equal ones": (1, "element", "of its state merged with equal ones"),
    "handed on alike": (1, "element", "of its state merged with equal ones"),
    "nested": (3, "element", "made of its state of nested tuples"),
    "unused": (4, "element", "of its state removed: unused or never changed"),
    "constant": (1, "element", "of its state removed: constant"),
    "constants": (1, "element", "of its state replaced by constants"),
    "counters": (1, "induction variable", "now computed from another one"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_each_simplification_is_one_application_with_its_count(name: str) -> None:
    _, context = simplified(TEXTS[name])
    count, noun, done = DONE[name]
    plural = "s" * (count > 1)
    assert said(context) == [f"applied w: {count} {noun}{plural} {done}"]
    assert context.statistics == {f"{noun}s {done}": count}
    assert context.applications.made == 1
    assert context.applications.last is not None
    assert context.applications.last.what == f"simplified: {noun}s {done}"


@pytest.mark.parametrize("name", TEXTS)
def test_a_loop_that_could_be_simplified_stays_at_the_limit(name: str) -> None:
    module, context = simplified(TEXTS[name], most=0, changes=False)
    assert module.is_pristine
    assert said(context) == [THREE_TRIPS]
    assert context.statistics == {}


@pytest.mark.parametrize("name", TEXTS)
def test_a_loop_whose_body_something_else_calls_is_not_simplified(name: str) -> None:
    text = TEXTS[name]
    shape = text.partition("  p = ")[2].partition(" parameter")[0]
    text = text.replace("ROOT w = ", "w = ").replace("ROOT end = ", "end = ")
    text = text.rstrip().removesuffix("}")
    text += f"  v = {shape} call(state), to_apply=body\n"
    text += f"  ROOT all = ({shape}, {shape}) tuple(w, v)\n}}\n"
    module, context = simplified(text, changes=False)
    assert module.is_pristine
    assert said(context) == [
        "missed w: it makes 3 trips; %body is called elsewhere, too: flatten the call graph"
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_a_loop_with_control_dependencies_is_not_simplified(name: str) -> None:
    text = TEXTS[name].replace("body=body", "body=body, control-predecessors={zero}")
    module, context = simplified(text, changes=False)
    assert module.is_pristine
    assert said(context) == ["missed w: it has control dependencies"]


def test_all_loops_are_simplified_those_inside_of_others_first() -> None:
    inner = text_of("s32[]; f32[4]", "n = f32[4] negate(p1); next, n", trips=1)
    inner = inner[inner.index("body {") : inner.index("ENTRY")]
    for name in ("body", "condition"):
        inner = inner.replace(f"{name} {{", f"inner.{name} {{")
    inner = inner.replace("  p = ", "  taken = ").replace("element(p)", "element(taken)")
    text = text_of(
        "s32[]; f32[4]; f32[4]",
        "start = s32[] constant(0); s = (s32[], f32[4]) tuple(start, p1); "
        "v = (s32[], f32[4]) while(s), condition=inner.condition, body=inner.body; "
        "y = f32[4] get-tuple-element(v), index=1; z = f32[4] sine(p2); next, y, z",
        entry="w = (s32[], f32[4], f32[4]) while(state), condition=condition, body=body\n  "
        "ROOT end = f32[4] get-tuple-element(w), index=1",
    )
    module, context = simplified(text.replace("HloModule m\n", f"HloModule m\n{inner}"))
    assert said(context) == [
        "applied v: removed: it makes one trip",
        "applied w: 1 element of its state removed: unused or never changed",
    ]
    assert loop_in(module).body == ["add(p.0, 1)", "negate(p.1)"]


def test_dead_code_goes_and_a_schedule_is_put_in_order() -> None:
    for header in ("", ", is_scheduled=true"):
        text = text_of(FIVE, WORKS, entry=NOTHING, header=header)
        module, _ = simplified(text.replace("zero = s32", "dead = s32[] constant(9)\n  zero = s32"))
        names = [i.opcode for i in module.entry.instructions]
        assert names.count(Opcode.CONSTANT) == 1
        if header:
            assert names[-1] is Opcode.GET_TUPLE_ELEMENT
        assert value_of(module.entry.root) == "w.0"
