"""Loops within loops, and the collectives of their trips."""

from __future__ import annotations

from tests.analysis.loops.modules import NESTED

from hloopt.analysis.calls import callees_first
from hloopt.analysis.loops.nesting import collectives_by_run, nested_loops
from hloopt.ir import Computation, Module
from hloopt.text import parse_module


def callers_first(module: Module) -> list[Computation]:
    return list(reversed(callees_first(module)))


def test_loops_come_before_those_in_them_with_their_depth() -> None:
    """A start in a called computation and its end behind both loops belong to no trip."""
    text = """HloModule m
test { p = s32[] parameter(0) ROOT c = pred[] constant(false) }
again { p = s32[] parameter(0) ROOT n = s32[] negate(p) }
called { p = s32[] parameter(0) ROOT inner = s32[] while(p), condition=test, body=again }
body { p = s32[] parameter(0) ROOT c = s32[] call(p), to_apply=called }
ENTRY e {
  p = s32[] parameter(0)
  outer = s32[] while(p), condition=test, body=body
  ROOT last = s32[] while(outer), condition=test, body=again
}
"""
    order = callers_first(parse_module(text))
    found = [(loop.name, depth) for loop, depth in nested_loops(order)]
    assert found == [("outer", 0), ("inner", 1), ("last", 0)]


def test_collectives_of_a_run_are_with_calls_but_without_loops() -> None:
    module = parse_module(NESTED)
    found = collectives_by_run(callers_first(module))
    by_name = {computation.name: counts for computation, counts in found.items()}
    assert by_name["called"] == by_name["inner_body"] == {"all-reduce": 1}
    assert by_name["body"] == {"all-reduce": 1}  # of the call; not that of the inner loop
    assert by_name["e"] == {}


def test_an_operation_from_its_start_to_its_done_counts_once() -> None:
    module = parse_module("""HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  start = (f32[4], f32[8]) all-gather-start(p), replica_groups={{0,1}}, dimensions={0}
  ROOT done = f32[8] all-gather-done(start)
}
""")
    assert collectives_by_run(callers_first(module)) == {module.entry: {"all-gather-start": 1}}
