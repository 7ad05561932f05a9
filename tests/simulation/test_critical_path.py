"""The longest chain of instructions that depend on each other."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from tests.simulation.programs import ADD, programs, run, scheduled, streams
from tests.simulation.test_execution import LOOP, LOOP_ENTRY, PAIR, WHOLE

from hloopt.analysis.latency import TableModel
from hloopt.ir import Module
from hloopt.ir.ordering import depends_on
from hloopt.simulation import simulate
from hloopt.simulation.critical_path import CriticalPaths


def test_the_path_leads_through_the_operation_that_takes_longest() -> None:
    module = scheduled(PAIR, ADD)
    simulation = run(module, {"s": 1, "w": 7, "d": 2, "r": 2}, {"s": 10})
    paths = CriticalPaths.of(simulation)
    assert paths.lengths[module.entry] == 1 + 10 + 2
    steps = [(step.instruction.name, step.time) for step in paths.steps[module.entry]]
    assert steps == [("s", 1), ("d", 10), ("r", 2)]


def test_a_synchronous_collective_is_on_the_path_for_all_its_time() -> None:
    module = scheduled(WHOLE, ADD)
    paths = CriticalPaths.of(run(module, {"whole": 17, "r": 2}, {"s": 10}))
    steps = [(step.instruction.name, step.time) for step in paths.steps[module.entry]]
    assert steps == [("whole", 17), ("r", 2)]


def test_what_has_to_wait_by_control_is_on_the_path() -> None:
    module = scheduled(
        """
  p = f32[8] parameter(0)
  first = f32[8] sine(p)
  then = f32[8] cosine(p), control-predecessors={first}
  ROOT r = f32[8] negate(p)"""
    )
    paths = CriticalPaths.of(run(module, {"first": 5, "then": 7, "r": 9}))
    steps = [(step.instruction.name, step.time) for step in paths.steps[module.entry]]
    assert steps == [("first", 5), ("then", 7)]
    assert paths.lengths[module.entry] == 5 + 7


def test_loops_take_their_trips_times_the_path_of_the_body() -> None:
    module = scheduled(LOOP_ENTRY, ADD + LOOP)
    paths = CriticalPaths.of(run(module, {"w": 40, "d": 3, "next": 1, "less": 1}, {"s": 10}))
    assert paths.lengths[module.entry] == 5 * 40 + 6 * 1


@given(programs())
def test_no_run_is_shorter_and_the_path_is_one(program: tuple[Module, TableModel]) -> None:
    simulation = simulate(*program, streams())
    paths = CriticalPaths.of(simulation)
    length = paths.lengths[simulation.module.entry]
    assert length <= simulation.makespan
    steps = paths.steps[simulation.module.entry]
    assert sum(step.time for step in steps) == length
    for before, after in pairwise(steps):
        assert depends_on(after.instruction, before.instruction)
