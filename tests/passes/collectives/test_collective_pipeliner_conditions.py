"""Conditions under which collective-pipeliner leaves collectives where they are."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.collectives.pipelined_loop import (
    FORMATTED,
    ONE_LOOP,
    STORED,
    loop,
    pipelined,
    the_loops,
)

from hloopt.diagnostics import HloError
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


@pytest.mark.parametrize("direction", ["forward", "forward-sink"])
def test_what_reads_the_whole_state_stays(direction: str) -> None:
    """The state would have to hold itself."""
    body = """  element = f32[4,8] get-tuple-element(p), index=2
  row = f32[1,8] slice(element), slice={[0:1], [0:8]}
  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)"""
    options: dict[str, Any] = {"should_process": ("get-tuple-element",)}
    _, remarks = pipelined(loop(body), changes=False, pipelining_direction=direction, **options)
    [remark] = [remark for remark in remarks if "%element" in remark]
    assert "it reads the whole state of the loop" in remark


def test_a_stated_trip_count_is_not_believed() -> None:
    entry = ONE_LOOP.replace(
        "body=body", 'body=body, backend_config={{"known_trip_count":{{"n":"4"}}}}'
    )
    entry = entry.replace("while(init)", "while(other)")
    entry = "  s = s32[] parameter(2)\n  other = {state} tuple(s, x0, y0)\n" + entry
    _, remarks = pipelined(loop(entry=entry), changes=False)
    assert remarks == [
        "missed %ar: not pipelined: the trip count of %w is not proved: the initial value of its "
        "counter, element 0, is not constant; known_trip_count is not believed"
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("while(init)", "while(given)", "starts with %given, which is no tuple"),
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


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_a_condition_with_a_side_effect_runs_as_often_as_before(direction: str) -> None:
    told = "t = token[] after-all()\n  told = token[] outfeed(k, t), outfeed_shape=s32[]"
    text = loop().replace("n = s32[] constant", f"{told}\n  n = s32[] constant")
    _, remarks = pipelined(
        text, changes=False, pipelining_direction=direction, should_process=("all-reduce",)
    )
    assert remarks == [
        "missed %ar: not pipelined: its loop %w has a condition with a side effect, %told"
    ]


def test_a_side_effect_behind_what_others_read_is_not_run_twice() -> None:
    body = """  told = f32[1,8] custom-call(part), custom_call_target="t", {effect}
  both = (f32[1,8], f32[1,8]) tuple(told, part)
  first = f32[1,8] get-tuple-element(both), index=0
  other = f32[1,8] get-tuple-element(both), index=1
  ar = f32[1,8] all-reduce(first), replica_groups={}, to_apply=sum
  sum.1 = f32[1,8] add(ar, other)
  stored = f32[4,8] dynamic-update-slice(x, sum.1, i, zero)"""
    text = loop(body.replace("{effect}", "custom_call_has_side_effect=true"))
    backward: dict[str, Any] = {
        "pipelining_direction": "backward",
        "should_process": ["all-reduce"],
    }
    _, remarks = pipelined(text, changes=False, **backward)
    assert remarks == ["missed %ar: not pipelined: %both reads %told too, which has a side effect"]
    pipelined(loop(body.replace(", {effect}", "")), **backward)


@pytest.mark.parametrize("direction", ["forward", "forward-sink"])
def test_an_index_from_a_call_with_a_side_effect_is_not_computed_twice(direction: str) -> None:
    called = """\ntell {
  k = s32[] parameter(0)
  ROOT told = s32[] custom-call(k), custom_call_target="t", custom_call_has_side_effect=true
}"""
    text = loop(
        """  at = s32[] call(zero), to_apply=tell
  y.row = f32[8] reshape(part)
  wide = f32[2,8] broadcast(y.row), dimensions={1}
  ar = f32[2,8] all-reduce(wide), replica_groups={}, to_apply=sum
  row = f32[1,8] dynamic-slice(ar, at, zero), dynamic_slice_sizes={1,8}
  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)"""
    ).replace("\nbody {", f"{called}\n\nbody {{")
    _, remarks = pipelined(
        text, changes=False, pipelining_direction=direction, should_process=["all-reduce"]
    )
    assert remarks == [
        "missed %ar: not pipelined: %row, between it and its store, has an index from %at, which "
        "has a side effect"
    ]


@pytest.mark.parametrize("opcode", ["parameter", "tuple"])
@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_the_whole_state_is_not_moved(direction: str, opcode: str) -> None:
    pipelined(loop(), changes=False, pipelining_direction=direction, should_process=[opcode])


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


def test_a_buffer_that_becomes_another_element_stays() -> None:
    _, remarks = pipelined(loop(ends="y, stored"), changes=False)
    assert remarks == [
        "missed %ar: not pipelined: %stored writes into element 1 of the state, but becomes "
        "element 2"
    ]


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level_to_operate_on": -1}, "'level_to_operate_on' takes no negative number"),
        ({"max_pipelining_per_loop": -3}, "'max_pipelining_per_loop' takes no negative number"),
        (
            {"should_process": "move-to-host", "pipelining_direction": "backward"},
            "move-to-host is pipelined forward, not backward",
        ),
        (
            {"should_process": "move-to-device"},
            "move-to-device is pipelined backward, not forward: set pipelining_direction=backward",
        ),
    ],
)
def test_options_that_could_move_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(HloError, match=said):
        create_pass("collective-pipeliner", options)


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


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("call(part), to_apply=all", "which %cr calls: inline that first"),
        (
            "fusion(part), kind=kLoop, calls=all",
            "which the fusion %cr runs as one: run this pass before fusion",
        ),
    ],
)
def test_what_is_called_in_a_loop_is_named(call: str, reason: str) -> None:
    text = loop(
        f"""  cr = f32[1,8] {call}
  stored = f32[4,8] dynamic-update-slice(x, cr, i, zero)"""
    ).replace(
        "\nbody {",
        "\nall {\n  v = f32[1,8] parameter(0)\n"
        "  ROOT ar = f32[1,8] all-reduce(v), replica_groups={}, to_apply=sum\n}\n\nbody {",
    )
    _, remarks = pipelined(text, changes=False)
    assert remarks == [f"missed %ar: not pipelined: it is in %all, {reason}"]


@pytest.mark.parametrize(
    ("body", "options", "said"),
    [
        (STORED.replace("to_apply=sum", "to_apply=sum, control-predecessors={part}"), {},
         "it has to run after %part, by control"),
        (STORED + "\n  after = f32[1,8] negate(part), control-predecessors={ar}", {},
         "it has to run before %after, by control"),
        (STORED.replace("to_apply=sum", "to_apply=sum, control-predecessors={part}"),
         {"pipelining_direction": "backward", "should_process": ("all-reduce",)},
         "it has to run after %part, by control: should_allow_control_dependencies would drop "
         "that"),
        (STORED, {"only_marked": True},
         "only_marked is on, and it has no frontend attribute is_pipelineable"),
        (STORED, {"pipelining_direction": "backward"},
         "should_process is for all-gather, unless it is given; pipelining_direction is backward"),
        (STORED.replace("(x, ar, i, zero)", "(x, part, i, zero)"), {}, "nothing uses it"),
        (FORMATTED.format("reverse(ar), dimensions={0}"), {},
         "%row, between it and its store, is a reverse, which cannot be moved along"),
        (FORMATTED.format("copy(ar), control-predecessors={part}"), {},
         "%row, between it and its store, has to run after %part, by control"),
        (FORMATTED.format("copy(ar)") + "\n  then = f32[1,8] abs(part), control-predecessors={row}",
         {}, "%row, between it and its store, has to run before %then, by control"),
        (FORMATTED.format("reshape(ar)"), {"acceptable_formatting": ("copy",)},
         "%row, between it and its store, is a reshape, which acceptable_formatting excludes"),
        (STORED.replace("(x, ar, i, zero)", "(x, ar, i, i)"), {},
         "%stored does not store along one dimension: all indices but one have to be 0"),
    ],
)  # fmt: skip
def test_why_a_collective_stays(body: str, options: dict[str, Any], said: str) -> None:
    _, remarks = pipelined(loop(body), changes=False, **options)
    assert remarks == [f"missed %ar: not pipelined: {said}"]


def test_another_should_process_is_the_users_choice() -> None:
    assert pipelined(loop(), changes=False, should_process=("all-gather",))[1] == []


@pytest.mark.parametrize(("limit", "made"), [(1, "one trip"), (0, "no trip")])
def test_a_loop_of_less_than_two_trips_stays(limit: int, made: str) -> None:
    _, remarks = pipelined(loop(limit=limit), changes=False)
    assert remarks == [f"missed %ar: not pipelined: its loop %w makes {made}, two are needed"]


def test_what_is_asynchronous_already_stays() -> None:
    body = STORED.replace("ar = f32[1,8] all-reduce(", "start = f32[1,8] all-reduce-start(")
    body = body.replace("to_apply=sum", "to_apply=sum\n  ar = f32[1,8] all-reduce-done(start)")
    _, remarks = pipelined(loop(body), changes=False)
    assert remarks == [
        "missed %start: not pipelined: it is asynchronous already: run this pass before "
        "async-collective-creator"
    ]


def test_what_is_in_a_branch_of_a_loop_is_named() -> None:
    text = loop(
        """  flag = pred[] constant(true)
  cr = f32[1,8] conditional(flag, part, part), true_computation=all, false_computation=none
  stored = f32[4,8] dynamic-update-slice(x, cr, i, zero)"""
    ).replace(
        "\nbody {",
        "\nall {\n  v = f32[1,8] parameter(0)\n"
        "  ROOT ar = f32[1,8] all-reduce(v), replica_groups={}, to_apply=sum\n}\n\n"
        "none {\n  ROOT v = f32[1,8] parameter(0)\n}\n\nbody {",
    )
    _, remarks = pipelined(text, changes=False)
    assert remarks == [
        "missed %ar: not pipelined: it is in %all, a branch of the conditional %cr, which not "
        "every trip takes"
    ]


def test_only_what_is_marked() -> None:
    text = loop(
        STORED.replace("to_apply=sum", 'to_apply=sum, frontend_attributes={is_pipelineable="{}"}')
    )
    pipelined(text.replace('"{}"', '"true"'), only_marked=True)
    pipelined(text.replace('"{}"', '"false"'), only_marked=True, changes=False)
    others: dict[str, Any] = {"only_marked": True, "should_process": ("all-gather",)}
    pipelined(text.replace('"{}"', '"true"'), changes=False, **others)
