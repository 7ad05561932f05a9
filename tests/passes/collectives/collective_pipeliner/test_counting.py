"""Loops by how they count, their conditions and side effects."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.collectives.collective_pipeliner.loops import ONE_LOOP, loop, pipelined, the_loops

from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
@pytest.mark.parametrize(
    ("start", "step", "limit", "compared"),
    [(0, 1, 3, "LE"), (3, -1, 0, "GE"), (3, -1, -1, "GT"), (0, 1, 4, "NE"), (0, 1, 4, "LT")],
)
def test_each_way_to_count_to_four(
    direction: str, start: int, step: int, limit: int, compared: str
) -> None:
    text = loop(start=start, step=step, limit=limit, direction=compared)
    module, remarks = pipelined(
        text, pipelining_direction=direction, should_process=("all-reduce",)
    )
    assert [remark.split(":")[0] for remark in remarks] == ["applied %ar"]
    [pipelined_loop] = the_loops(module)
    assert len(pipelined_loop.shape.elements) > 3


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_a_loop_that_is_the_root_results_in_what_it_did(direction: str) -> None:
    """The new root leaves out what the loop carries in addition.

    XLA's pass, which does not, changes the result.
    """
    text = loop(entry="  ROOT w = {state} while(init), condition=condition, body=body")
    module, _ = pipelined(text, pipelining_direction=direction, should_process=("all-reduce",))
    assert len(module.entry.root.shape.elements) == 3


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


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_counters_at_the_end_of_their_type(direction: str) -> None:
    text = loop(counter="u8", start=252, limit=255)
    options: dict[str, Any] = {"pipelining_direction": direction, "should_process": ("all-reduce",)}
    assert pipelined(text, **options)[1] == [
        "applied %ar: pipelined forward, level 0: a trip later in %w"
        if direction == "forward"
        else "applied %ar: pipelined backward: a trip earlier in %w"
    ]
    endless = parse_module(loop(counter="u8", start=252, limit=255, step=2))
    context = PassContext()
    assert not create_pass("collective-pipeliner").run(endless, context)
    assert [remark.reason for remark in context.remarks] == [
        "not pipelined: the trip count of %w is not proved: its counter does not reach the limit "
        "without overflow"
    ]


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


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_side_effects_of_a_peeled_trip_keep_their_place_beside_the_loop(direction: str) -> None:
    text = loop(
        """  t = s32[] custom-call(zero), custom_call_target="t", custom_call_has_side_effect=true
  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"""
    )
    module, _ = pipelined(text, pipelining_direction=direction, should_process=("all-reduce",))
    [pipelined_loop] = the_loops(module)
    [peeled] = [i for i in pipelined_loop.parent.instructions if i.opcode is Opcode.CUSTOM_CALL]
    ends = (peeled, pipelined_loop) if direction == "forward" else (pipelined_loop, peeled)
    assert list(ends[1].control_predecessors) == [ends[0]]


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
