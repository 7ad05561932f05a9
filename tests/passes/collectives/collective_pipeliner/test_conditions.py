"""Conditions under which collective-pipeliner leaves collectives where they are."""

from __future__ import annotations

import pytest
from tests.passes.collectives.collective_pipeliner.loops import (
    STORED,
    loop,
    pipelined,
    the_loops,
)

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("while(init)", "while(given)", "starts with %given, which is not a tuple"),
        ("ROOT next = ", "made = ", "has a body that does not end with a tuple"),
        ("part = f32[1,8] dynamic-slice(y", "whole = {state} copy(p)\n"
         "  own = f32[4,8] get-tuple-element(whole), index=2\n"
         "  part = f32[1,8] dynamic-slice(own",
         "has a state that %whole uses as a whole, not by its elements"),
        ("k = s32[] get-tuple-element(q)", "whole = {state} copy(q)\n"
         "  k = s32[] get-tuple-element(whole)",
         "has a state that %whole uses as a whole, not by its elements"),
        ("ROOT r = f32[4,8] get-tuple-element(w)", "whole = {state} copy(w)\n"
         "  ROOT r = f32[4,8] get-tuple-element(whole)",
         "has a state that %whole uses as a whole, not by its elements"),
    ],
)  # fmt: skip
def test_loops_that_are_not_looked_through(old: str, new: str, reason: str) -> None:
    state = "(s32[], f32[4,8], f32[4,8])"
    text = loop()
    assert old in text
    text = text.replace(old, new.replace("{state}", state))
    text = text.replace("y0 = f32[4,8] parameter(1)", f"y0 = f32[4,8] parameter(1)\n"
                        f"  given = {state} parameter(2)")  # fmt: skip
    if "made" in new:
        text = text.replace("tuple(j, stored, y)", "tuple(j, stored, y)\n"
                            f"  ROOT copied = {state} copy(made)")  # fmt: skip
    _, remarks = pipelined(text, changes=False)
    assert remarks == [f"missed %ar: not pipelined: its loop %w {reason}"]


@pytest.mark.parametrize("reuses", [True, False])
def test_a_loop_carries_operands_that_do_not_wait_where_results_are_stored(reuses: bool) -> None:
    module, _ = pipelined(loop(), reuse_pipelined_op_buffer=reuses)
    [pipelined_loop] = the_loops(module)
    # Besides counter and arrays, where the trip before stored.
    assert len(pipelined_loop.shape.elements) == 3 + 1 + (not reuses)


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_what_was_pipelined_is_counted(direction: str) -> None:
    context = PassContext()
    options = {"pipelining_direction": direction, "should_process": ("all-reduce",)}
    create_pass("collective-pipeliner", options).run(parse_module(loop()), context)
    assert context.statistics[f"pipelined {direction}"] == 1


READ_AGAIN = """
  other = f32[4,8] get-tuple-element(p), index=1
  held = f32[4,8] opt-barrier(x)
  seen = f32[4,8] add({read}, y)"""


@pytest.mark.parametrize("direction", ["forward", "forward-sink"])
@pytest.mark.parametrize(
    ("read", "into", "reason"),
    [
        ("x", "x", "%held reads buffer %x of %stored, too"),
        ("held", "x", "%held reads buffer %x of %stored, too"),
        ("x", "held", "%seen reads buffer %x of %stored, too"),
        ("held", "held", "%seen reads buffer %held of %stored, too"),
        ("other", "held", "%other reads the buffer of %stored, too"),
    ],
)
def test_a_buffer_that_a_trip_reads_stays(
    direction: str, read: str, into: str, reason: str
) -> None:
    """The trip would not see what the trip before stored."""
    body = STORED.replace("(x, ar", f"({into}, ar") + READ_AGAIN.format(read=read)
    lines = body.split("\n")
    text = loop("\n".join([*lines[2:], *lines[:2]]), ends="stored, seen")
    _, remarks = pipelined(text, changes=False, pipelining_direction=direction)
    assert remarks == [f"missed %ar: not pipelined: {reason}"]


def test_a_new_buffer_whose_last_value_a_trip_reads_stays() -> None:
    body = """  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  none = f32[] constant(2)
  new = f32[4,8] broadcast(none), dimensions={}
  stored = f32[4,8] dynamic-update-slice(new, ar, i, zero), frontend_attributes={always_sink="1"}
  seen = f32[4,8] add(x, y)"""
    _, remarks = pipelined(loop(body, ends="stored, seen"), changes=False)
    assert remarks == ["missed %ar: not pipelined: %x reads in the loop what %stored stores"]


@pytest.mark.parametrize("reuses", [True, False])
def test_the_new_stores_come_after_and_before_what_the_old_ones_did(reuses: bool) -> None:
    body = """  before = f32[1,8] negate(part)
  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero), control-predecessors={before}
  after = f32[1,8] abs(part), control-predecessors={stored}
  late = f32[1,8] sine(part), control-predecessors={before}"""
    entry = """  begun = f32[4,8] negate(x0)
  w = {state} while(init), condition=condition, body=body
  x1 = f32[4,8] get-tuple-element(w), index=1, control-predecessors={{begun}}
  ended = f32[4,8] abs(x0), control-predecessors={{x1}}
  ROOT r = (f32[4,8], f32[4,8]) tuple(x1, ended)"""
    module, _ = pipelined(loop(body, entry=entry), reuse_pipelined_op_buffer=reuses)
    [pipelined_loop] = the_loops(module)
    around = {"body": ("before", "after"), "main": ("begun", "ended")}
    for computation in (pipelined_loop.called[0], module.entry):
        before, after = around[computation.name]
        last = [i for i in computation.instructions if i.opcode is Opcode.DYNAMIC_UPDATE_SLICE][-1]
        assert [i.name for i in last.control_predecessors] == [before]
        [late] = [i for i in computation.instructions if i.opcode is Opcode.SINE]
        assert [i.opcode for i in late.control_predecessors] == [Opcode.NEGATE]
        assert [i.name for i in last.control_successors] == [after]


def test_the_first_trip_has_scheduling_groups_of_its_own() -> None:
    note = ', frontend_attributes={_scheduling_group_id="3"}'
    body = f"""  a = f32[1,8] negate(part){note}
  b = f32[1,8] abs(a){note}
  ar = f32[1,8] all-reduce(b), replica_groups={{}}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"""
    module, _ = pipelined(loop(body))
    groups = {
        computation: [
            i.attributes["frontend_attributes"]
            for i in module.computations[computation].instructions
            if i.opcode in (Opcode.NEGATE, Opcode.ABS)
        ]
        for computation in ("body", "main")
    }
    assert groups["body"] == ['{_scheduling_group_id="3"}'] * 2
    assert groups["main"] == ['{_scheduling_group_id="4"}'] * 2
