"""The option `solver` of the search: what it adds to results and to remarks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.scheduling.asynchronous_programs import random_program
from tests.scheduling.mixed_programs import mixed_program
from tests.scheduling.programs import scheduled
from tests.scheduling.test_search import CONFIGS, figures, neighbours, scheduling_of

from hloopt.analysis.latency import FixedModel
from hloopt.diagnostics import PipelineError
from hloopt.options import Seconds
from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.search import computation_search, module_search
from hloopt.scheduling.search.check import broken_rule
from hloopt.scheduling.search.computation_search import ComputationSearch
from hloopt.scheduling.search.exact.clock import Times
from hloopt.scheduling.search.exact.solve import Effort, Limits, Objective, Solution, value
from hloopt.scheduling.search.module_search import ModuleSearch, search_module
from hloopt.scheduling.search.problem import TICKS, Problem
from hloopt.scheduling.search.walk import Walk
from hloopt.scheduling.search_options import SearchOptions
from hloopt.text import parse_module, print_module

EFFORT = Effort(20, is_deterministic=True)


def searched(text: str, **options: Any) -> tuple[ModuleScheduling, PassContext]:
    """A module that was searched and solved, and what was reported."""
    scheduling = ModuleScheduling.of(
        parse_module(text), SchedulerConfig(**options).resolved(), FixedModel()
    )
    context = PassContext("latency-hiding-scheduler")
    schedule_and_report(scheduling, context)
    scheduling.scheduler.life.restart()
    return scheduling, context


def remarks_of(context: PassContext) -> list[str]:
    return [r.reason for r in context.remarks if "no order" in r.reason]


# -- with OR-Tools ---------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", [0, 2])
def test_results_keep_every_rule_and_are_proved(seed: int, config: dict[str, Any]) -> None:
    pytest.importorskip("ortools", reason="needs the extra solver")
    text = random_program(seed, 12, loops="top_down_scheduling" not in config)
    plain = scheduling_of(text, **config)
    search = SearchOptions(iterations=20, solver="cp-sat")
    found, context = searched(text, **config, search=search)
    assert found.scheduler.life.peak <= plain.scheduler.life.peak
    for (total, exposed), (plain_total, plain_exposed) in zip(
        figures(found), figures(plain), strict=True
    ):
        assert total <= plain_total
        assert exposed <= plain_exposed
    for computation in found.computations():
        assert broken_rule(computation, found.scheduler) is None
    assert neighbours(plain.module) <= neighbours(found.module)
    reasons = remarks_of(context)
    assert reasons
    assert all(reason.endswith(" (proved optimal)") for reason in reasons)


@pytest.mark.parametrize("seed", range(3))
def test_an_order_takes_as_long_in_the_simulator_as_the_solver_says(seed: int) -> None:
    pytest.importorskip("ortools", reason="needs the extra solver")
    scheduling = scheduling_of(mixed_program(seed, 10), preset="xla-gpu")
    search = ModuleSearch(scheduling.scheduler, scheduling.computations(), SearchOptions())
    for each in search.searches:
        each.solve(EFFORT, lambda _: True)
        assert each.proved is not None
        assert each.best.total_cycles * TICKS == each.proved


def test_iterations_and_seed_decide_the_result_of_the_solver_too() -> None:
    pytest.importorskip("ortools", reason="needs the extra solver")
    text = random_program(3, 14)
    search = SearchOptions(iterations=10, solver="cp-sat", solver_time=Seconds(2))
    first, second = (print_module(searched(text, search=search)[0].module) for _ in range(2))
    assert first == second


# -- without it ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver_time": -1.0}, "the search's solver_time is -1s: it has to be 0 or more"),
        ({"solver_time": float("inf")}, "the search's solver_time is infs"),
        ({"iterations": -1}, "the search's iterations is -1"),
    ],
)
def test_a_solver_has_to_end(options: dict[str, Any], message: str) -> None:
    options = {k: Seconds(v) if k == "solver_time" else v for k, v in options.items()}
    with pytest.raises(PipelineError, match=message):
        SearchOptions(**options)


def test_without_or_tools_there_is_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools", None)
    for name in [name for name in sys.modules if name.startswith("ortools.")]:
        monkeypatch.delitem(sys.modules, name)
    text = random_program(1, 8)
    expected = "the search's solver is cp-sat, and OR-Tools cannot be imported: "
    with pytest.raises(PipelineError, match=expected) as caught:
        searched(text, search=SearchOptions(iterations=1, solver="cp-sat"))
    assert caught.value.help == "pip install 'hloopt[solver]'"
    searched(text, search=SearchOptions(iterations=1))


class FakeSolver:
    """Answers in place of the solver, and remembers what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[Problem, Limits, Effort]] = []
        self.part: float | None = 1.0
        """The part of the order's value that is proved; None for no answer."""
        self.nodes: list[int] | None = None
        """The order in answers; None for the one that is given."""
        monkeypatch.setattr(computation_search, "solve", self.solve)
        monkeypatch.setattr(module_search, "require_solver", lambda: None)

    def solve(
        self,
        problem: Problem,
        order: Sequence[int],
        objective: Objective,
        limits: Limits,
        effort: Effort,
    ) -> Solution | None:
        self.asked.append((problem, limits, effort))
        if self.part is None:
            return None
        nodes = self.nodes or [*order]
        return Solution(nodes, int(value(problem, nodes, objective) * self.part))


@pytest.fixture
def solver(monkeypatch: pytest.MonkeyPatch) -> FakeSolver:
    return FakeSolver(monkeypatch)


ONLY_SOLVED = SearchOptions(iterations=0, solver="cp-sat")
COPY_AND_GATHER = scheduled(
    """p = f32[8] parameter(0)
  s = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[16] all-gather-done(s)
  c = (f32[8], f32[8], u32[]) copy-start(p)
  e = f32[8] copy-done(c)
  ROOT r = (f32[8], f32[16]) tuple(e, d)"""
)
"""Both wait, and either could hide nothing but the other's start."""


@pytest.mark.parametrize(
    ("part", "end"),
    [
        (1.0, " (proved optimal)"),
        (0.8, " (within 25 % of the bound)"),
        (0.9, " (within 11.2 % of the bound)"),  # rounded up
    ],
)
def test_remarks_say_how_near_the_order_is(solver: FakeSolver, part: float, end: str) -> None:
    solver.part = part
    _, context = searched(random_program(2, 14, loops=False), search=ONLY_SOLVED)
    (reason,) = remarks_of(context)
    assert reason.startswith("no order of %main was found that takes less than ")
    assert reason.endswith(end)


@pytest.mark.parametrize("part", [None, 0.0])
def test_remarks_are_those_of_the_search_where_nothing_is_proved(
    solver: FakeSolver, part: float | None
) -> None:
    solver.part = part
    text = random_program(2, 14, loops=False)
    _, plain = searched(text, search=SearchOptions(iterations=0))
    _, context = searched(text, search=ONLY_SOLVED)
    assert solver.asked
    assert remarks_of(context) == remarks_of(plain)


@pytest.mark.parametrize(("part", "end"), [(1.0, " (proved optimal)"), (0.0, "collectives")])
def test_the_bound_is_one_of_waiting_where_only_that_counts(
    solver: FakeSolver, part: float, end: str
) -> None:
    solver.part = part
    search = SearchOptions(iterations=0, solver="cp-sat", objective="exposed")
    _, context = searched(COPY_AND_GATHER, search=search)
    (reason,) = remarks_of(context)
    assert "; none waits less than " in reason
    assert reason.endswith(end)
    ((problem, limits, _),) = solver.asked
    plain = Times.of(problem, problem.nodes)
    assert limits.most == max(plain.end)
    assert limits.most_exposed == plain.exposed(problem)


def test_only_small_computations_are_solved(solver: FakeSolver) -> None:
    text = random_program(2, 14, loops=False)
    count = len(parse_module(text).entry)
    for limit, asked in ((count, 1), (count - 1, 0)):
        solver.asked.clear()
        searched(text, search=replace(ONLY_SOLVED, solver_limit=limit))
        assert len(solver.asked) == asked


def test_the_solver_works_by_the_clock_or_by_its_own_measure(solver: FakeSolver) -> None:
    text = random_program(2, 14, loops=False)
    for changes, expected in (
        ({"solver_time": Seconds(7)}, Effort(7, is_deterministic=True)),
        ({"iterations": None, "budget": Seconds(0)}, Effort(60, is_deterministic=False)),
    ):
        solver.asked.clear()
        searched(text, search=replace(ONLY_SOLVED, **changes))
        ((_, _, effort),) = solver.asked
        assert effort == expected


def solvable(text: str) -> tuple[ModuleSearch, ComputationSearch]:
    scheduling = scheduling_of(text)
    search = ModuleSearch(scheduling.scheduler, scheduling.computations(), SearchOptions())
    return search, search.searches[-1]


def test_what_is_known_to_be_the_best_is_not_asked(solver: FakeSolver) -> None:
    _, search = solvable(random_program(2, 14, loops=False))
    search.walk.best = 0
    search.solve(EFFORT, lambda _: True)
    assert not solver.asked
    assert search.proved == value(search.problem, search.best_nodes, "makespan")


def better_nodes(search: ComputationSearch) -> list[int]:
    """A better order than the plain one, by the search."""
    walk = Walk(search.problem, "0")
    for _ in range(3000):
        walk.step()
    assert walk.best_nodes != search.problem.nodes
    return walk.best_nodes


@pytest.mark.parametrize("fits", [True, False])
def test_a_better_order_is_taken_if_it_fits(solver: FakeSolver, *, fits: bool) -> None:
    _, search = solvable(random_program(2, 30))
    plain, found = search.best_nodes, better_nodes(search)
    solver.nodes = found
    search.solve(EFFORT, lambda _: fits)
    assert search.best_nodes == (found if fits else plain)
    assert search.walk.order.nodes == search.best_nodes
    assert search.proved == value(search.problem, found, "makespan")
    finding = search.finding()
    assert finding is not None
    assert finding.is_better == fits
    assert ("proved optimal" in finding.reason) == fits


def test_an_order_that_is_no_better_is_not_taken(solver: FakeSolver) -> None:
    _, search = solvable(random_program(2, 30))
    plain, found = search.problem.nodes, better_nodes(search)
    search.walk.restart(found)
    search.end_round(lambda _: True)
    solver.nodes = plain
    search.solve(EFFORT, lambda _: True)
    assert search.best_nodes == found
    ((problem, limits, _),) = solver.asked
    assert limits.most == value(problem, found, "makespan") < value(problem, plain, "makespan")
    assert sum(problem.cost) <= limits.least <= limits.most


def test_progress_names_what_is_solved(solver: FakeSolver) -> None:
    scheduling = scheduling_of(random_program(2, 14))
    told: list[tuple[str, float]] = []
    computations = scheduling.computations()
    search_module(scheduling.scheduler, computations, ONLY_SOLVED, lambda *what: told.append(what))
    count = len(computations)
    assert told == [(f"solving %{c.name}", n / count) for n, c in enumerate(computations)]
