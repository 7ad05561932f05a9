"""Loops that go, and those that are only looked at as options and marks say."""

from __future__ import annotations

import pytest
from tests.passes.control_flow.test_loop_counters import HALF, with_constants
from tests.passes.control_flow.test_loop_state import (
    THREE_TRIPS,
    loop_in,
    said,
    simplified,
    text_of,
    value_of,
)

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

BODY = "n1 = f32[4] negate(p1); next, n1"


@pytest.mark.parametrize(
    ("trips", "result", "remark"),
    [
        (0, "(0, s.1)", "applied w: removed: it makes no trip"),
        (1, "(add(0, 1), negate(s.1))", "applied w: removed: it makes one trip"),
    ],
)
@pytest.mark.parametrize("header", ["", ", is_scheduled=true"])
def test_loops_of_no_trip_or_one_are_replaced(
    trips: int, result: str, remark: str, header: str
) -> None:
    text = text_of("s32[]; f32[4]", BODY, trips=trips, header=header)
    module, context = simplified(text)
    assert value_of(module.entry.root) == result
    assert list(module.computations) == ["e"]
    assert said(context) == [remark]
    assert context.statistics == {"loops removed": 1}


@pytest.mark.parametrize("trips", [0, 1])
def test_a_loop_that_could_go_stays_at_the_limit(trips: int) -> None:
    text = text_of("s32[]; f32[4]", BODY, trips=trips)
    module, context = simplified(text, most=0, changes=False)
    assert module.is_pristine
    assert said(context) == []
    assert context.statistics == {}


@pytest.mark.parametrize("trips", [0, 1])
def test_what_is_said_of_the_value_of_a_loop_is_said_of_its_result(trips: int) -> None:
    notes = (
        ', sharding={{replicated}, {maximal device=1}}, frontend_attributes={a="b"}, '
        'metadata={op_name="loop"}, backend_config={"known_trip_count":{"n":"1"}}'
    )
    entry = "w = (s32[], f32[4]) while(state), condition=condition, body=body" + notes
    entry += "\n  ROOT x = f32[4] get-tuple-element(w), index=1"
    module, _ = simplified(text_of("s32[]; f32[4]", BODY, trips=trips, entry=entry))
    whole = module.entry.root.operands[0]
    assert whole.opcode is Opcode.TUPLE
    kept = {"sharding", "frontend_attributes"}
    assert kept <= set(whole.attributes)
    assert "backend_config" not in whole.attributes
    negations = [i for i in module.entry.instructions if i.opcode is Opcode.NEGATE]
    assert all("metadata" not in i.attributes for i in negations)


def test_the_loop_that_a_shared_body_belongs_to_goes_or_says_what_stops_it() -> None:
    w = "(s32[], f32[4]) while({}), condition=condition, body=body"
    entry = f"v = {w.format('state')}\n  last = s32[] constant(2)\n  from = (s32[], f32[4]) "
    entry += f"tuple(last, s.1)\n  w = {w.format('from')}\n  ROOT r = ((s32[], f32[4]), "
    entry += "(s32[], f32[4])) tuple(v, w)"
    module, context = simplified(text_of("s32[]; f32[4]", BODY, entry=entry))
    assert [i.name for i in module.instructions(Opcode.WHILE)] == ["v"]
    assert said(context) == [
        "missed v: it makes 3 trips; %body is called elsewhere, too: flatten the call graph",
        "applied w: removed: it makes one trip",
    ]


def test_comparisons_are_looked_at_only_where_that_is_asked_for() -> None:
    text = text_of("s32[]; pred[]", "four = s32[] constant(4); c = pred[] compare(p0, four), "
                   "direction=LT; n1 = pred[] xor(p1, c); next, n1")  # fmt: skip
    _, context = simplified(text, changes=False)
    assert said(context) == [THREE_TRIPS]
    module, context = simplified(text, simplify_compare_instrs=True)
    assert loop_in(module).body == ["add(p.0, 1)", "xor(p.1, true)"]
    assert said(context) == ["applied w: 1 comparison replaced by constants"]


def test_counters_are_merged_where_no_comparison_is_simplified() -> None:
    text = text_of("s32[]; s32[]", "a = s32[] add(p1, one); next, a")
    module, context = simplified(text, simplify_compare_instrs=True)
    assert loop_in(module).body == ["add(p.0, 1)", "p.1"]
    assert said(context) == ["applied w: 1 induction variable now computed from another one"]


def test_constants_found_are_no_reason_to_leave_the_counters() -> None:
    text = text_of("s32[]; s32[]; f32[]; f32[]", "a = s32[] add(p1, one); x = f32[] add(p3, p2); "
                   "next, a, p2, x", starts="zero, s.1, half, s.3")  # fmt: skip
    module, context = simplified(with_constants(text, HALF))
    assert loop_in(module).body == ["add(p.0, 1)", "p.1", "0.5", "add(p.3, 0.5)"]
    assert said(context) == [
        "applied w: 1 element of its state replaced by constants",
        "applied w: 1 induction variable now computed from another one",
    ]


@pytest.mark.parametrize("header", ["", ", is_scheduled=true"])
def test_a_module_without_loops_is_left_alone(header: str) -> None:
    text = f"HloModule m{header}\nENTRY e {{ p = f32[] parameter(0) dead = f32[] sine(p) " \
        "ROOT r = f32[] negate(p) }"  # fmt: skip
    module = parse_module(text)
    assert not create_pass("simplify-while-loops").run(module, PassContext())
    assert module.is_pristine


def test_dead_code_goes_only_where_a_loop_changed() -> None:
    text = text_of("s32[]; f32[4]", BODY).replace("zero = s32", "dead = s32[] constant(1)\n"
                                                  "  zero = s32")  # fmt: skip
    module, _ = simplified(text, changes=False)
    assert "dead" in {i.name for i in module.entry.instructions}
    module, _ = simplified(text.replace("constant(3)", "constant(1)"))
    assert "dead" not in {i.name for i in module.entry.instructions}
