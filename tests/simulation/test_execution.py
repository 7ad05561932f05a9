"""One run of a module by its schedule."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.simulation.programs import ADD, programs, run, scheduled, streams, table

from hloopt.analysis.latency import TableModel
from hloopt.analysis.latency.statistics import schedule_statistics
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.gpu_tracker import GpuResourceTracker
from hloopt.simulation import Streams, simulate
from hloopt.simulation.bandwidth import Bandwidth
from hloopt.targets import load_target

PAIR = """
  p = f32[8] parameter(0)
  s = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add
  w = f32[8] negate(p)
  d = f32[8] all-reduce-done(s)
  ROOT r = f32[8] add(d, w)
"""


def test_work_between_start_and_done_hides_latency() -> None:
    simulation = run(scheduled(PAIR, ADD), {"s": 1, "w": 7, "r": 2}, {"s": 10})
    (operation,) = simulation.entry.operations
    assert simulation.makespan == 1 + 10 + 2
    assert (operation.exposed, operation.hidden) == (3, 7)
    assert simulation.exposed_by_kind() == {Opcode.ALL_REDUCE: 3}
    assert operation.stream.name == "all-reduce"
    assert [(i.name, time) for i, time in simulation.entry.work_under(operation)] == [("w", 7)]


WHOLE = """
  p = f32[8] parameter(0)
  s = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}
  whole = f32[8] all-reduce(p), replica_groups={}, to_apply=add
  d = f32[8] collective-permute-done(s)
  ROOT r = f32[8] add(d, whole)
"""


def test_the_program_waits_for_a_synchronous_collective_at_once() -> None:
    module = scheduled(WHOLE, ADD)
    simulation = run(module, {"whole": 7, "r": 2}, {"s": 10})
    whole, beside = simulation.entry.operations
    assert whole.is_synchronous
    assert whole.done is whole.start
    assert (whole.exposed, whole.hidden) == (7, 0)
    assert (beside.exposed, beside.hidden) == (3, 7)  # the wait hides what is in flight
    assert simulation.makespan == 10 + 2
    assert simulation.exposed == 7 + 3
    as_xla = run(module, {"whole": 7, "r": 2}, {"s": 10}, loops="cost")
    assert [operation.start.name for operation in as_xla.entry.operations] == ["s"]


def test_a_start_that_waits_for_the_end_hides_nothing() -> None:
    sync = 'backend_config={"collective_backend_config":{"is_sync":true}}'
    module = scheduled(PAIR.replace("to_apply=add", f"to_apply=add, {sync}"), ADD)
    free = {instruction.name: 0.0 for instruction in module.instructions()}
    model = table(free | {"w": 7}, {"s": 10})
    simulation = simulate(module, model, Streams(GpuResourceTracker(SchedulerConfig().resolved())))
    (operation,) = simulation.entry.operations
    assert (operation.start.name, operation.done.name) == ("s", "d")
    assert (operation.exposed, simulation.makespan) == (10, 17)


LOOP = """
  body {
    t = (s32[], f32[8]) parameter(0)
    i = s32[] get-tuple-element(t), index=0
    x = f32[8] get-tuple-element(t), index=1
    one = s32[] constant(1)
    next = s32[] add(i, one)
    s = f32[8] all-reduce-start(x), replica_groups={}, to_apply=add
    w = f32[8] negate(x)
    d = f32[8] all-reduce-done(s)
    y = f32[8] add(d, w)
    ROOT u = (s32[], f32[8]) tuple(next, y)
  }
  condition {
    c = (s32[], f32[8]) parameter(0)
    j = s32[] get-tuple-element(c), index=0
    n = s32[] constant(5)
    ROOT less = pred[] compare(j, n), direction=LT
  }
"""
LOOP_ENTRY = """
  zero = s32[] constant(0)
  p = f32[8] parameter(0)
  init = (s32[], f32[8]) tuple(zero, p)
  loop = (s32[], f32[8]) while(init), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(loop), index=1
"""


def test_loops_take_their_trips() -> None:
    module = scheduled(LOOP_ENTRY, ADD + LOOP)
    node, latency = {"w": 4.0, "less": 1.0, "loop": 100.0}, {"s": 10.0}
    trips = run(module, node, latency)
    assert trips.makespan == 5 * 10 + 6 * 1
    assert trips.exposed == 5 * 6
    assert {run.computation.name: run.runs for run in trips.runs.values()} == {
        **{"body": 5, "condition": 6, "e": 1}
    }
    once = run(module, node, latency, loops="once")
    assert once.makespan == 10 + 2 * 1
    as_xla = run(module, node, latency, loops="cost")
    assert as_xla.makespan == 100


def test_a_loop_of_unknown_trips_takes_one() -> None:
    entry = LOOP_ENTRY.replace("constant(0)", "parameter(1)")
    simulation = run(scheduled(entry, ADD + LOOP), {"w": 4}, {"s": 10})
    assert simulation.makespan == 10
    assert [loop.name for loop in simulation.unknown_loops] == ["loop"]
    runs = {run.computation.name: run for run in simulation.runs.values()}
    assert not runs["body"].runs_known
    assert runs["e"].runs_known


def test_of_a_conditional_the_branch_that_takes_longest_runs() -> None:
    branches = """
      a { x1 = f32[8] parameter(0) ROOT slow = f32[8] negate(x1) }
      b { x2 = f32[8] parameter(0) ROOT quick = f32[8] negate(x2) }
    """
    body = """
      k = pred[] parameter(0)
      p = f32[8] parameter(1)
      ROOT c = f32[8] conditional(k, p, p), true_computation=a, false_computation=b
    """
    simulation = run(scheduled(body, branches), {"slow": 9, "quick": 2})
    assert simulation.makespan == 9
    assert {run.computation.name: run.runs for run in simulation.runs.values()} == {
        **{"a": 1, "b": 0, "e": 1}
    }


TWO = """
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  start1 = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add
  start2 = f32[8] all-reduce-start(q), replica_groups={}, to_apply=add
  d1 = f32[8] all-reduce-done(start1)
  d2 = f32[8] all-reduce-done(start2)
  ROOT r = f32[8] add(d1, d2)
"""


def test_a_stream_takes_as_many_operations_as_its_limit() -> None:
    module = scheduled(TWO, ADD)
    latency = {"start1": 10.0, "start2": 10.0}
    assert run(module, {}, latency).makespan == 20
    assert run(module, {}, latency, all_reduces=2).makespan == 10
    free = table({i.name: 0.0 for i in module.instructions()}, latency)
    unlimited = Streams(streams().tracker, is_limited=False)
    assert simulate(module, free, unlimited).makespan == 10


def test_halves_of_operations_are_told() -> None:
    text = PAIR.replace("d = f32[8] all-reduce-done(s)", "d = f32[8] copy(w)")
    simulation = run(scheduled(text, ADD), {"w": 7}, {"s": 10})
    assert simulation.makespan == 7
    assert [i.name for i in simulation.entry.unpaired] == ["s"]


def test_times_the_model_does_not_know_are_told() -> None:
    module = scheduled(PAIR, ADD)
    simulation = simulate(module, table({"w": 7.0}, {}), streams())
    assert [i.name for i in simulation.guessed] == ["p", "s", "s", "d", "r"]


def test_a_copy_beside_a_kernel_bound_by_memory_hides_little() -> None:
    """What openxla/xla pull request 46150 is about."""
    size = 64 << 20
    body = f"""
      p = f32[{size}] parameter(0)
      q = f32[{size}] parameter(1)
      s = (f32[{size}], f32[{size}], u32[]) copy-start(p)
      w = f32[{size}] negate(q)
      d = f32[{size}] copy-done(s)
      ROOT r = (f32[{size}], f32[{size}]) tuple(d, w)
    """
    module = scheduled(body)
    target = load_target("h100_sxm")
    moved = 2 * 4 * size / target.memory_bandwidth * 1e6
    times = table({i.name: 0.0 for i in module.instructions()} | {"w": moved}, {"s": moved})
    plain = simulate(module, times, streams())
    assert plain.makespan == pytest.approx(moved)
    assert plain.exposed == 0
    shared = simulate(module, times, streams(), bandwidth=Bandwidth(module, target, 1.0))
    assert shared.makespan == pytest.approx(2 * moved)


@given(programs())
def test_without_limits_the_figures_are_those_of_xla(program: tuple[Module, TableModel]) -> None:
    module, model = program
    tracker = streams().tracker
    simulation = simulate(module, model, Streams(tracker, is_limited=False), loops="cost")
    statistics = schedule_statistics(
        simulation.entry.order, model, tracker.is_start, tracker.is_done
    )
    assert simulation.makespan == statistics.total_cycles
    exposed = simulation.exposed_by_kind()
    exposed.pop(Opcode.COPY, None)  # XLA reports no waiting for copies
    assert {kind: time for kind, time in exposed.items() if time} == statistics.wasted


@given(programs())
def test_time_is_work_and_waiting(program: tuple[Module, TableModel]) -> None:
    simulation = simulate(*program, streams())
    entry = simulation.entry
    assert simulation.makespan == sum(entry.work) + entry.exposed
    assert entry.begin == sorted(entry.begin)
    for operation in entry.operations:
        assert operation.issued <= operation.begin
        assert operation.finish == operation.begin + operation.latency


@given(programs())
def test_limits_and_sharing_never_make_a_run_faster(program: tuple[Module, TableModel]) -> None:
    module, model = program
    limited, unlimited = streams(), Streams(streams().tracker, is_limited=False)
    bandwidth = Bandwidth(module, load_target("h100_sxm"), 1.0)
    plain = simulate(module, model, unlimited).makespan
    assert simulate(module, model, limited).makespan >= plain
    assert simulate(module, model, unlimited, bandwidth=bandwidth).makespan >= plain - 1e-6


@given(programs())
def test_in_a_schedule_of_the_scheduler_nothing_waits_for_a_stream(
    program: tuple[Module, TableModel],
) -> None:
    module, model = program
    create_pass("latency-hiding-scheduler", {}).run(module, PassContext())
    for operation in simulate(module, model, streams()).entry.operations:
        assert operation.queued == 0
