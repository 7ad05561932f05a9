"""The search for a better schedule of a module."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from hloopt.analysis.latency.run_times import RunTimes
from hloopt.diagnostics import counted
from hloopt.ir import Computation, Instruction
from hloopt.scheduling.engine.scheduler import Scheduler
from hloopt.scheduling.memory.pressure import BufferLife
from hloopt.scheduling.search.check import broken_rule, initial_state
from hloopt.scheduling.search.computation_search import (
    ComputationSearch,
    Finding,
    link,
    shares,
)
from hloopt.scheduling.search.exact.solve import Effort, require_solver
from hloopt.scheduling.search.order import Order
from hloopt.scheduling.search.packing import Packing
from hloopt.scheduling.search.problem import make_problem, pairs_of
from hloopt.scheduling.search.squeeze import squeeze
from hloopt.scheduling.search_options import SearchOptions
from hloopt.search_budget import Progress, SearchBudget

_FIRST_ROUND = 2000
_STEPS_PER_REPORT = 64
_GROWTH = 1.5
"""By how much each round is longer than the one before."""


class SearchOutcome(NamedTuple):
    """The results of a search in the computations of a module."""

    tried: int
    """The number of orders that were looked at."""
    findings: list[Finding]


def search_module(
    scheduler: Scheduler,
    computations: list[Computation],
    options: SearchOptions,
    on_progress: Progress | None = None,
) -> SearchOutcome:
    """Improve the present orders of `computations`, which come callees first.

    Where the module is allocated more than `memory_limit`, the order of the last one is changed
    first so that it is allocated less, which may take longer. From there on no computation takes
    longer, or waits longer for collectives, the module needs no more memory, and every rule of the
    scheduler holds. Raises PipelineError where `options` name a solver that is not installed.
    """
    budget = SearchBudget(
        "a better schedule",
        options,
        on_progress,
        steps_per_report=_STEPS_PER_REPORT,
    )
    if options.solver is not None:
        require_solver()
    search = ModuleSearch(scheduler, computations, options)
    search.run(budget)
    if options.solver is not None:
        search.solve(options, on_progress)
    return SearchOutcome(budget.taken, search.adopt())


def _fit(scheduler: Scheduler, computation: Computation, packing: Packing, limit: int) -> bool:
    """Reorder a computation whose module is allocated more than `limit`, so that it is less.

    Less is alive at the peak then; where the packing leaves larger gaps for it, the order stays.
    So do the orders of its callees. Returns whether it is reordered.
    """
    life, allocated = scheduler.life, packing.allocated
    if allocated <= limit:
        return False
    state = initial_state(computation, scheduler)
    exposes = [False] * len(pairs_of(state, scheduler.model))
    problem = make_problem(state, scheduler.model, exposes, (1, 1), life.peak, shares(state))
    order = Order(problem)
    if not squeeze(order, limit - _gaps(packing, life)):
        return False
    squeezed = [state.graph.instructions[node] for node in order.nodes]
    if not packing.fits(computation, squeezed) or packing.allocated >= allocated:
        return False
    computation.reorder(squeezed)
    scheduler.tracker.forget(computation)
    life.restart()
    return True


def _gaps(packing: Packing, life: BufferLife) -> int:
    """Bytes that are allocated beyond those that are alive at the peak."""
    return max(packing.allocated - life.peak, 0)


class ModuleSearch:
    """The searches in the computations of a module, which share its memory."""

    def __init__(
        self, scheduler: Scheduler, computations: list[Computation], options: SearchOptions
    ) -> None:
        self.scheduler = scheduler
        life = scheduler.life
        life.restart()
        module = computations[0].module
        limit = options.memory_limit
        self.packing = Packing(module, limit)
        if limit is not None and _fit(scheduler, computations[-1], self.packing, limit):
            self.packing = Packing(module, limit)  # what the plain orders took is allowed no more
        self.limit = life.peak
        """Bytes that may be alive at the module's peak."""
        if limit is not None:
            self.limit = max(life.peak, limit - _gaps(self.packing, life))
        model = scheduler.model
        if model.target is not None:  # else there is nothing better than its constants
            model = RunTimes(model, module)
        self.searches = [
            ComputationSearch.of(computation, scheduler, model, options.objective, options.seed)
            for computation in computations
        ]
        """Callees first."""
        link(self.searches)
        for search in self.searches:
            if search.computation.is_entry:
                search.problem.memory.limit = self.limit

    def run(self, budget: SearchBudget) -> None:
        """Search in rounds, in one computation after the other, until the budget is used up.

        Whoever comes first has the choice of the memory that is left: callees, as the body of a
        loop runs many times.
        """
        steps = _FIRST_ROUND
        while unfinished := [s for s in self.searches if not s.walk.is_finished]:
            for search in unfinished:
                search.begin_round()
                for _ in range(steps):
                    if not budget.take():
                        break
                    search.walk.step()
                search.end_round(partial(self.packing.fits, search.computation))
            if budget.part >= 1:
                break
            steps = int(steps * _GROWTH)

    def solve(self, options: SearchOptions, on_progress: Progress | None) -> None:
        """Let the solver go on from the best order of each small computation, callees first."""
        effort = Effort(options.solver_time, options.iterations is not None)
        small = [s for s in self.searches if len(s.instructions) <= options.solver_limit]
        for number, search in enumerate(small):
            if on_progress is not None:
                on_progress(f"solving %{search.computation.name}", number / len(small))
            search.solve(effort, partial(self.packing.fits, search.computation))

    def adopt(self) -> list[Finding]:
        """Give the computations the best orders found, if all of them hold together."""
        plain = {s.computation: list(s.computation.instructions) for s in self.searches}
        self._reorder({s.computation: s.best_order() for s in self.searches})
        problem = self._problem()
        if problem is None:
            found = [search.finding() for search in self.searches]
            return [finding for finding in found if finding is not None]
        self._reorder(plain)
        root = self.searches[-1].computation.root
        return [Finding(root, False, f"the better order was given up: {problem}")]

    def _reorder(self, orders: dict[Computation, list[Instruction]]) -> None:
        for computation, order in orders.items():
            if order != list(computation.instructions):
                computation.reorder(order)
                self.scheduler.tracker.forget(computation)
        self.scheduler.life.restart()

    def _problem(self) -> str | None:
        """The fault of the present orders, by the scheduler's own measures."""
        peak = self.scheduler.life.peak
        if peak > self.limit:
            return f"the module would need {counted(peak, 'byte')} instead of {self.limit:,}"
        for search in self.searches:
            reason = broken_rule(search.computation, self.scheduler)
            if reason is not None:
                return reason
        return None
