"""Estimates of run times: trips of loops, and copies that share the bandwidth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory_space.programs import named

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Instruction
from hloopt.memory_space.costs.copy_queues import CopyQueues
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.costs.runtime import RuntimeSimulator
from hloopt.memory_space.options.cost_options import CostOptions
from hloopt.text import parse_module

RATES = CostOptions(
    flops_per_second=1,
    default_mem_bandwidth_bytes_per_second=1,
    alternate_mem_read_bandwidth_bytes_per_second=2,
    alternate_mem_write_bandwidth_bytes_per_second=2,
)


def simulator(text: str) -> RuntimeSimulator:
    module = parse_module(text)
    return RuntimeSimulator(MemorySpaceCosts(module, RATES), FlatSchedule.of(module), 1)


COPIES = """HloModule m, is_scheduled=true
slice { sp = f32[64] parameter(0)
  ROOT part = f32[16]{0:S(1)} slice(sp), slice={[0:16]} }
ENTRY e { a = f32[64] parameter(0)
  b = f32[8]{0:S(1)} parameter(1)
  none = f32[0] parameter(2)
  read = (f32[64]{0:S(1)}, f32[64], u32[]) copy-start(a)
  write = (f32[8], f32[8]{0:S(1)}, u32[]) copy-start(b)
  here = (f32[64], f32[64], u32[]) copy-start(a)
  there = (f32[8]{0:S(1)}, f32[8]{0:S(1)}, u32[]) copy-start(b)
  empty = (f32[0]{0:S(1)}, f32[0], u32[]) copy-start(none)
  other = ((f32[64]), f32[16]{0:S(1)}) custom-call-start(a), custom_call_target="f"
  nothing = token[] after-all()
  sliced = ((f32[64]), f32[16]{0:S(1)}, s32[]) async-start(a), calls=slice
  fast = f32[8]{0:S(1)} negate(b)
  pair = (f32[8]{0:S(1)}, f32[8]) tuple(fast, b)
  write-done = f32[8] copy-done(write)
  here-done = f32[64] copy-done(here)
  there-done = f32[8]{0:S(1)} copy-done(there)
  read-done = f32[64]{0:S(1)} copy-done(read)
  empty-done = f32[0]{0:S(1)} copy-done(empty)
  sliced-done = f32[16]{0:S(1)} async-done(sliced)
  other-done = f32[16]{0:S(1)} custom-call-done(other)
  ROOT r = f32[64] add(here-done, read-done) }
"""


def left(run: RuntimeSimulator) -> list[dict[str, float]]:
    queues = run.queues.reads, run.queues.writes
    return [{start.name: size for start, size in queue.items()} for queue in queues]


def test_copies_wait_in_the_queue_of_their_direction() -> None:
    run = simulator(COPIES)
    steps = {step.name: step for step in run._schedule.steps}
    for name in ("read", "write", "here", "there", "empty", "other", "sliced"):
        assert run.step(steps[name]) == 0
    assert left(run) == [{"read": 256, "empty": 0, "sliced": 64}, {"write": 32}]
    assert run.step(steps["fast"]) == 32  # 16 to read and 16 to write, all in alternate memory
    assert left(run) == [{"read": 240, "empty": 0, "sliced": 64}, {"write": 16}]
    assert run.step(steps["write-done"]) == 32
    assert left(run) == [{"read": 224, "empty": 0, "sliced": 64}, {}]
    assert run.step(steps["here-done"]) == run.step(steps["there-done"]) == 0
    assert run.step(steps["sliced-done"]) == 224 + 64
    assert left(run) == [{}, {}]
    assert run.step(steps["read-done"]) == run.step(steps["empty-done"]) == 0


def test_the_run_time_has_the_waits_and_nothing_of_asynchronous_computations() -> None:
    tables, result = 2 * 8, 128 + 256 + 256  # what `pair` writes; `r` reads 256 in fast memory
    assert simulator(COPIES).seconds_without_copies() == 32 + tables + result
    assert simulator(COPIES).seconds() == 32 + tables + result + (32 + 288)


def test_arrays_in_alternate_memory_are_found_in_tuples() -> None:
    run = simulator(COPIES)
    module = run._schedule.steps[0].parent.module
    assert run.alternate_parts(named(module, "pair")) == ([(0, ()), (1, ())], [(0,)])
    assert run.alternate_parts(named(module, "write")) == ([(0, ())], [(1,)])
    main = RuntimeSimulator(run.costs, run._schedule, 0)  # as if that were the fast one
    assert main.alternate_parts(named(module, "pair")) == ([], [(1,)])
    assert main.alternate_parts(named(module, "nothing")) == ([], [])


LOOP = """HloModule m, is_scheduled=true
cond { cp = (s32[], f32[8]) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  n = s32[] constant(COUNT)
  ROOT less = pred[] compare(ci, n), direction=LT }
body { bp = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(bp), index=0
  x = f32[8] get-tuple-element(bp), index=1
  one = s32[] constant(1)
  inc = s32[] add(i, one)
  neg = f32[8] negate(x)
  ROOT bt = (s32[], f32[8]) tuple(inc, neg) }
ENTRY e { zero = s32[] constant(0)
  p = f32[8] parameter(0)
  q = s32[] parameter(1)
  t = (s32[], f32[8]) tuple(START, p)
  ROOT w = (s32[], f32[8]) while(t), condition=cond, body=body }
"""


@pytest.mark.parametrize(
    ("count", "start", "trips"), [(7, "zero", 7), (1, "zero", 1), (0, "zero", 0), (7, "q", 5)]
)
def test_loops_count_with_their_trips(count: int, start: str, trips: int) -> None:
    run = simulator(LOOP.replace("COUNT", str(count)).replace("START", start))
    one_trip = (4 + 4 + 1) + (4 + 4 + 4) + (32 + 32) + 16
    assert run.seconds() == run.seconds_without_copies() == 16 + trips * one_trip


# -- queues ----------------------------------------------------------------------------------------

STARTS = list(
    parse_module(
        "HloModule m\nENTRY e {\n p0 = f32[] parameter(0)\n"
        + "".join(f"p{n} = f32[] negate(p{n - 1})\n" for n in range(1, 8))
        + "}"
    ).instructions()
)


def queues(reads: list[float], writes: list[float], rate: float = 2) -> CopyQueues:
    result = CopyQueues(rate)
    result.reads.update(zip(STARTS, reads, strict=False))
    result.writes.update(zip(reversed(STARTS), writes, strict=False))
    return result


@pytest.mark.parametrize(
    ("reads", "writes", "seconds", "left"),
    [
        ([8], [], 3, ([2], [])),
        ([], [8], 3, ([], [2])),
        ([8], [8], 3, ([5], [5])),
        ([8], [2], 3, ([4], [])),  # 2 s shared, then 1 s alone
        ([2, 8], [8], 3, ([7], [5])),
        ([8], [], 0, ([8], [])),
        ([8], [], -1, ([8], [])),
        ([1], [1], 100, ([], [])),
        ([0, 4], [0, 4], 1, ([3], [3])),
    ],
)
def test_copies_go_on_while_instructions_run(
    reads: list[float], writes: list[float], seconds: float, left: tuple[list[float], list[float]]
) -> None:
    found = queues(reads, writes)
    found.run(seconds)
    assert ([*found.reads.values()], [*found.writes.values()]) == left


@pytest.mark.parametrize(
    ("reads", "writes", "copy", "seconds", "left"),
    [
        ([8], [], 0, 4, ([], [])),
        ([8], [8], 0, 8, ([], [])),
        ([8], [2], 0, 5, ([], [])),
        ([2], [8], 0, 2, ([], [6])),
        ([2, 4, 6], [3], 1, 4.5, ([6], [])),
        ([2, 4], [1, 1, 9], 0, 2, ([4], [9])),
        ([2], [], 1, 0, ([2], [])),  # not under way
        ([], [], 0, 0, ([], [])),
        ([0], [4], 0, 0, ([], [4])),
    ],
)
def test_waiting_for_a_copy_is_waiting_for_those_before_it(
    reads: list[float],
    writes: list[float],
    copy: int,
    seconds: float,
    left: tuple[list[float], list[float]],
) -> None:
    found = queues(reads, writes)
    assert found.wait(STARTS[copy]) == seconds
    assert ([*found.reads.values()], [*found.writes.values()]) == left
    mirrored = queues(writes, reads)
    mirror: Instruction = STARTS[-1 - copy]
    assert mirrored.wait(mirror) == seconds
    assert ([*mirrored.writes.values()], [*mirrored.reads.values()]) == left


def test_what_rounding_leaves_over_is_copied() -> None:
    found = queues([0.4], [], rate=1)
    for _ in range(4):
        found.run(0.1)
    assert not found.reads


def test_without_a_rate_copies_take_no_time() -> None:
    found = queues([8, 8], [8], rate=0)
    assert found.wait(STARTS[0]) == 0
    found.run(0)
    assert not found.reads
    assert not found.writes


@given(st.lists(st.integers(0, 9), max_size=4), st.lists(st.integers(0, 9), max_size=4))
def test_all_bytes_take_their_time_however_they_are_waited_for(
    reads: list[float], writes: list[float]
) -> None:
    found = queues(reads, writes)
    total = sum(found.wait(start) for start in STARTS)
    assert total == (sum(reads) + sum(writes)) / 2
    assert not found.reads
    assert not found.writes
