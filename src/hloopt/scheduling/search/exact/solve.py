"""Ask the CP-SAT solver of OR-Tools for the best order of a computation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from hloopt.diagnostics import PipelineError
from hloopt.scheduling.search.exact.claims import limit_claims
from hloopt.scheduling.search.exact.clock import Clock, Times
from hloopt.scheduling.search.exact.memory import limit_memory
from hloopt.scheduling.search.exact.places import Places
from hloopt.scheduling.search.exact.relations import Relations
from hloopt.scheduling.search.problem import Problem

Objective = Literal["makespan", "exposed"]


class Limits(NamedTuple):
    """A bound for all orders, and limits of those that are of interest, in ticks."""

    least: int
    """No order takes less."""
    most: int
    """None that takes longer is of interest."""
    most_exposed: int
    """None that waits longer for collectives is."""


class Effort(NamedTuple):
    """How long the solver may take."""

    seconds: float
    is_deterministic: bool
    """Whether these are of the solver's own measure of work, which is the same everywhere."""


class Solution(NamedTuple):
    """The best order that the solver knows, and what it proved."""

    nodes: list[int]
    least: int
    """Ticks: no order that is of interest has a smaller `value`."""


def require_solver() -> None:
    """Raise PipelineError where OR-Tools is not installed."""
    try:
        import ortools.sat.python.cp_model  # noqa: F401  # only whether it is there
    except ImportError as error:
        raise PipelineError(
            f"the search's solver is cp-sat, and OR-Tools cannot be imported: {error}",
            help="pip install 'hloopt[solver]'",
        ) from None


def value(problem: Problem, order: Sequence[int], objective: Objective) -> int:
    """The ticks that an order takes, or that it waits for collectives if only these count."""
    times = Times.of(problem, order)
    return times.exposed(problem) if counts_exposed(problem, objective) else times.end[order[-1]]


def counts_exposed(problem: Problem, objective: Objective) -> bool:
    """Whether waiting for collectives is what counts, apart from other waiting."""
    return objective == "exposed" and 0 < sum(problem.exposes) < len(problem.exposes)


def solve(
    problem: Problem, order: Sequence[int], objective: Objective, limits: Limits, effort: Effort
) -> Solution | None:
    """The best order, or the best that is found in time; None where the solver finds none at all.

    `order` keeps every rule and is within the limits.
    """
    if counts_exposed(problem, objective):
        return _Question(problem, order, objective, limits).answer(effort)
    question = _Question(problem, order, objective, limits, waits=False)
    short = question.answer(effort)
    if short is None or Times.of(problem, short.nodes).exposed(problem) <= limits.most_exposed:
        return short
    limits = limits._replace(least=max(limits.least, short.least))
    rest = effort._replace(seconds=max(0.0, effort.seconds - question.seconds))
    return _Question(problem, order, objective, limits).answer(rest) or short._replace(
        nodes=[*order]
    )


class _Question:
    """A model of a problem, and the solver that it is put to."""

    def __init__(
        self,
        problem: Problem,
        order: Sequence[int],
        objective: Objective,
        limits: Limits,
        *,
        waits: bool = True,
    ) -> None:
        """`waits`: whether to keep the limit of waiting for collectives."""
        from ortools.sat.python import cp_model

        model = self._model = cp_model.CpModel()
        self._places = Places(model, Relations.of(problem), order)
        horizon = limits.least, limits.most
        clock = self._clock = Clock(model, self._places, order, horizon, waits=waits)
        limit_claims(model, self._places)
        if self._places.relations.has_memory:
            limit_memory(model, self._places)
        if waits:
            model.add(clock.exposed() <= limits.most_exposed // clock.unit)
        model.minimize(clock.exposed() if counts_exposed(problem, objective) else clock.total)
        self.seconds = 0.0
        """The effort that the answer took."""

    def answer(self, effort: Effort) -> Solution | None:
        """The best order that is found; None if there is none."""
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = 1  # with more of them the result depends on which is faster
        parameters.random_seed = 0
        parameters.linearization_level = 0  # solved more in less time than 1 and 2
        if effort.is_deterministic:
            parameters.max_deterministic_time = effort.seconds
        else:
            parameters.max_time_in_seconds = effort.seconds
        status = solver.solve(self._model)
        response = solver.response_proto
        self.seconds = (
            response.deterministic_time if effort.is_deterministic else response.wall_time
        )
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        relations = self._places.relations
        placed = sorted(relations.placed, key=lambda node: solver.value(self._places[node]))
        least = round(solver.best_objective_bound) * self._clock.unit
        return Solution(relations.completed(placed), least)
