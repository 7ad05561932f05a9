"""The times at which buffers are live."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.memory_space.programs import Step, named, program, programs

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Instruction, Opcode
from hloopt.memory.buffers import Buffers
from hloopt.memory_space.live_ranges import BufferLiveRanges, Range, joined
from hloopt.text import parse_module

LOOP = """HloModule m, is_scheduled=true
cond { cp = (f32[4], f32[0], s32[]) parameter(0)
  ci = s32[] get-tuple-element(cp), index=2
  limit = s32[] constant(3)
  ROOT less = pred[] compare(ci, limit), direction=LT }
body { bp = (f32[4], f32[0], s32[]) parameter(0)
  b0 = f32[4] get-tuple-element(bp), index=0
  b1 = f32[0] get-tuple-element(bp), index=1
  b2 = s32[] get-tuple-element(bp), index=2
  neg = f32[4] negate(b0)
  none = f32[0] negate(b1)
  inc = s32[] add(b2, b2)
  ROOT bt = (f32[4], f32[0], s32[]) tuple(neg, none, inc) }
ENTRY e { p = f32[4] parameter(0)
  n = f32[0] parameter(1)
  i = s32[] parameter(2)
  a = f32[4] negate(p)
  lonely = f32[4] negate(p)
  t = (f32[4], f32[0], s32[]) tuple(a, n, i)
  w = (f32[4], f32[0], s32[]) while(t), condition=cond, body=body
  w0 = f32[4] get-tuple-element(w), index=0
  w1 = f32[0] get-tuple-element(w), index=1
  ROOT r = f32[4] add(w0, w0) }
"""
# p 0, n 1, i 2, a 3, lonely 4, t 5, cp 6, ci 7, limit 8, less 9, bp 10, b0 11, b1 12, b2 13,
# neg 14, none 15, inc 16, bt 17, w 18, w0 19, w1 20, r 21

PASSED = """HloModule m, is_scheduled=true
left { lp = f32[4] parameter(0)
  l0 = f32[4] negate(lp)
  l1 = f32[4] negate(l0)
  ROOT l2 = f32[4] add(l1, lp) }
right { rp = f32[4] parameter(0)
  ROOT r0 = f32[4] constant({1, 2, 3, 4}) }
cond { cp = (f32[4], f32[4]) parameter(0)
  ROOT go = pred[] constant(true) }
body { bp = (f32[4], f32[4]) parameter(0)
  b0 = f32[4] get-tuple-element(bp), index=0
  b1 = f32[4] get-tuple-element(bp), index=1
  which = pred[] constant(false)
  c = f32[4] conditional(which, b0, b1), true_computation=left, false_computation=right
  ROOT bt = (f32[4], f32[4]) tuple(b0, c) }
ENTRY e { p = f32[4] parameter(0)
  a = f32[4] negate(p)
  b = f32[4] negate(p)
  t = (f32[4], f32[4]) tuple(a, b)
  w = (f32[4], f32[4]) while(t), condition=cond, body=body
  ROOT w1 = f32[4] get-tuple-element(w), index=1 }
"""
# p 0, a 1, b 2, t 3, cp 4, go 5, bp 6, b0 7, b1 8, which 9, lp 10, l0 11, l1 12, l2 13, rp 14,
# r0 15, c 16, bt 17, w 18, w1 19

ONE_BRANCH = """HloModule m, is_scheduled=true
only { op = f32[4] parameter(0)
  ROOT o = f32[4] negate(op) }
other { up = f32[4] parameter(0)
  ROOT u = f32[4] abs(up) }
ENTRY e { i = s32[] parameter(0)
  p = f32[4] parameter(1)
  a = f32[4] negate(p)
  c = f32[4] conditional(i, a), branch_computations={only}
  d = f32[4] conditional(i, a), branch_computations={other}
  ROOT r = f32[4] add(c, d) }
"""
# i 0, p 1, a 2, op 3, o 4, c 5, up 6, u 7, d 8, r 9

ASYNC = """HloModule m, is_scheduled=true
work { wp = f32[4] parameter(0)
  w0 = f32[4] negate(wp)
  ROOT w1 = f32[4] negate(w0) }
ENTRY e { p = f32[4] parameter(0)
  a = f32[4] negate(p)
  s = ((f32[4]), f32[4], s32[]) async-start(a), calls=work
  u = ((f32[4]), f32[4], s32[]) async-update(s)
  b = f32[4] negate(p)
  d = f32[4] async-done(u)
  ROOT r = f32[4] add(d, b) }
"""
# p 0, a 1, wp 2, w0 3, w1 4, s 5, u 6, b 7, d 8, r 9

CALL = """HloModule m, is_scheduled=true
sum { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
callee { cp = f32[4] parameter(0)
  ROOT c0 = f32[4] negate(cp) }
ENTRY e { p = f32[4] parameter(0)
  a = f32[4] negate(p)
  b = f32[4] call(a), to_apply=callee
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(b, zero), dimensions={0}, to_apply=sum }
"""
# p 0, a 1, cp 2, c0 3, b 4, zero 5, r 6


def ranges_of(text: str, place: str) -> list[Range]:
    """The ranges of the buffer at `name`, or at `name.1` of a tuple."""
    module = parse_module(text)
    flow = Dataflow.of(module)
    name, _, element = place.partition(".")
    value = flow.at(named(module, name), (int(element),) if element else ())
    assert value is not None
    live = BufferLiveRanges(flow, FlatSchedule.of(module))
    return live.of_buffer(Buffers.of(flow).of_value[value])


@pytest.mark.parametrize(
    ("text", "place", "ranges"),
    [
        (LOOP, "p", [(0, 4)]),
        (LOOP, "lonely", [(4, 4)]),
        (LOOP, "t", [(5, 9), (10, 13), (17, 17), (18, 20)]),
        (LOOP, "limit", [(8, 9)]),
        # before the loop, in the condition without use, in the body, of the next trip, after it
        (LOOP, "a", [(3, 9), (10, 14), (14, 17), (18, 21)]),
        (LOOP, "none", [(1, 9), (10, 15), (15, 17), (18, 18)]),
        (LOOP, "w.2", [(2, 9), (10, 16), (16, 17), (18, 18)]),
        (PASSED, "a", [(1, 17)]),
        (PASSED, "b", [(2, 5), (6, 10), (13, 13), (14, 14), (15, 15), (16, 17), (18, 19)]),
        (PASSED, "which", [(9, 10)]),
        (PASSED, "l0", [(11, 12)]),
        (ONE_BRANCH, "i", [(0, 6)]),
        (ONE_BRANCH, "a", [(2, 7)]),
        (ONE_BRANCH, "o", [(4, 9)]),
        (ONE_BRANCH, "u", [(7, 9)]),
        (ASYNC, "a", [(1, 8)]),
        (ASYNC, "w0", [(3, 4)]),
        (ASYNC, "w1", [(2, 9)]),
        (ASYNC, "b", [(7, 9)]),
        (CALL, "a", [(1, 4)]),
        (CALL, "b", [(3, 6)]),
        (CALL, "x", []),
    ],
)
def test_ranges(text: str, place: str, ranges: list[Range]) -> None:
    assert ranges_of(text, place) == joined(ranges)


def test_ranges_that_share_a_time_are_one_and_adjacent_ones_are_not() -> None:
    assert joined([(4, 6), (1, 2), (3, 4), (8, 9), (8, 8)]) == [(1, 2), (3, 6), (8, 9)]
    assert joined([(1, 9), (2, 3), (9, 9)]) == [(1, 9)]
    assert joined([]) == []


@given(programs())
def test_each_time_somebody_holds_or_reads_a_value_is_in_a_range(steps: list[Step]) -> None:
    module = program(steps)
    schedule, flow = FlatSchedule.of(module), Dataflow.of(module)
    live = BufferLiveRanges(flow, schedule)
    for value in flow.values():
        ranges = joined(live.of_value(value))
        wanted = {schedule.times[flow.definer[value]]} | {
            _needed_until(schedule, use.user) for use in flow.uses(value)
        }
        assert all(any(first <= t <= last for first, last in ranges) for t in wanted)
        ends = {time for each in ranges for time in each}
        starts = {span[0] for span in schedule.spans.values()}
        conditions = {schedule.times[c.root] for c in schedule.spans}
        assert ends <= wanted | starts | conditions


def _needed_until(schedule: FlatSchedule, user: Instruction) -> int:
    if user.opcode in (Opcode.WHILE, Opcode.CONDITIONAL):
        return min(schedule.spans[callee][0] for callee in user.called)
    return schedule.times[user]
