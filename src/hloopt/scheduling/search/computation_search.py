"""The search in one computation of a module: what it may use, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from hloopt.analysis.latency import LatencyModel
from hloopt.analysis.latency.statistics import (
    ScheduleStatistics,
    counts_as_exposed,
    host_waiting,
    schedule_statistics,
)
from hloopt.ir import Computation, Instruction
from hloopt.scheduling.engine.scheduler import Scheduler
from hloopt.scheduling.search.check import initial_state
from hloopt.scheduling.search.exact.clock import Times
from hloopt.scheduling.search.exact.solve import (
    Effort,
    Limits,
    Objective,
    counts_exposed,
    solve,
    value,
)
from hloopt.scheduling.search.problem import (
    TICKS,
    Problem,
    make_problem,
    pairs_of,
)
from hloopt.scheduling.search.walk import Walk
from hloopt.scheduling.state.state import SchedulingState

_WEIGHTS = {"makespan": (1001, 1000), "exposed": (1000, 1)}
"""By objective what counts a tick that is waited for a collective, and for something else. What
matters less matters so little that it decides between equals only."""
_ROUNDING = 1e-9


class Finding(NamedTuple):
    """An order that was found, or that none was."""

    root: Instruction
    """The root of the computation."""
    is_better: bool
    """Whether the order is better than the plain one."""
    reason: str
    """For people."""


@dataclass(slots=True, eq=False)
class ComputationSearch:
    """A computation whose order is looked for, between others of its module."""

    computation: Computation
    scheduler: Scheduler
    model: LatencyModel
    """The times of a run: where the scheduler is told constants in place of times, they are not."""
    objective: Objective
    instructions: list[Instruction]
    problem: Problem
    walk: Walk
    plain: ScheduleStatistics
    best: ScheduleStatistics
    best_nodes: list[int]
    peak: int
    """Bytes that the best order adds to what is alive below the call, at most."""
    proved: int | None = None
    """The ticks that no order is better than, as a solver proved; what counts is `value`."""
    callers: list[tuple[ComputationSearch, int]] = field(default_factory=list)
    """The nodes that call it, if all of these are in computations that are searched."""
    callees: dict[int, list[ComputationSearch]] = field(default_factory=dict)
    """By node the computations it calls that are searched."""
    other_callees: dict[int, int] = field(default_factory=dict)
    """By such a node the bytes that other computations add that it calls."""

    @classmethod
    def of(
        cls,
        computation: Computation,
        scheduler: Scheduler,
        model: LatencyModel,
        objective: Objective,
        seed: int,
    ) -> ComputationSearch:
        """The search from the present order on. O(edges + uses of buffers)."""
        state = initial_state(computation, scheduler)
        instructions = state.graph.instructions
        exposes = [counts_as_exposed(instructions[start]) for start, _, _ in pairs_of(state, model)]
        peak = scheduler.life.states[computation].peak
        problem = make_problem(state, model, exposes, _WEIGHTS[objective], peak, shares(state))
        statistics = _statistics(list(computation.instructions), scheduler, model)
        walk = Walk(problem, f"{seed}:{computation.name}")
        return cls(
            computation=computation,
            scheduler=scheduler,
            model=model,
            objective=objective,
            instructions=instructions,
            problem=problem,
            walk=walk,
            plain=statistics,
            best=statistics,
            best_nodes=walk.best_nodes,
            peak=peak,
        )

    def begin_round(self) -> None:
        """Begin at the best order, with the memory that others leave at theirs: what callers do
        not need, and at least what the plain order needs."""
        memory = self.problem.memory
        for node, callees in self.callees.items():
            peaks = [callee.peak for callee in callees]
            memory.inside[node] = max(*peaks, self.other_callees[node])
        if self.callers:
            memory.limit = max(self.peak, min(caller.room(node) for caller, node in self.callers))

    def end_round(self, fits: Callable[[Sequence[Instruction]], bool]) -> None:
        """Go back to the best order, and note what it needs.

        An order that is better only until the times of starts are rounded, as XLA does, is not, and
        neither is one that does not fit.
        """
        walk = self.walk
        if walk.best_nodes != self.best_nodes:
            order = [self.instructions[node] for node in walk.best_nodes]
            statistics = _statistics(order, self.scheduler, self.model)
            if not _is_worse(statistics, self.plain) and fits(order):
                self.best_nodes, self.best = walk.best_nodes, statistics
        walk.restart(self.best_nodes)
        self.peak = walk.order.peak()

    def solve(self, effort: Effort, fits: Callable[[Sequence[Instruction]], bool]) -> None:
        """Look for the best order there is, and note what is proved. Needs OR-Tools.

        Orders count that fit in the memory that other computations leave now.
        """
        problem, best = self.problem, self._value()
        if self.walk.is_finished:
            self.proved = best
            return
        self.begin_round()
        plain, known = (Times.of(problem, nodes) for nodes in (problem.nodes, self.best_nodes))
        longest = plain if counts_exposed(problem, self.objective) else known
        limits = Limits(
            least=sum(problem.cost) + self.walk.least_ticks,
            most=max(longest.end),
            most_exposed=plain.exposed(problem),
        )
        solution = solve(problem, self.best_nodes, self.objective, limits, effort)
        if solution is not None:
            self.proved = solution.least
            if value(problem, solution.nodes, self.objective) < best:
                self.walk.restart(solution.nodes)
        self.end_round(fits)

    def _value(self) -> int:
        return value(self.problem, self.best_nodes, self.objective)

    def room(self, node: int) -> int:
        """Bytes that what a node calls may add, in the best order."""
        return self.problem.memory.limit - self.walk.order.usage_below(node)

    def finding(self) -> Finding | None:
        """The result in words; None where the plain order never waited."""
        name, root = f"%{self.computation.name}", self.computation.root
        before, after = self.plain, self.best
        if not self.walk.waited:
            return None
        if after is before:
            return Finding(
                root,
                False,
                f"no order of {name} was found that takes less than "
                f"{_number(before.total_cycles)} {self.model.unit}; none {self._bound()}",
            )
        return Finding(
            root,
            True,
            f"{name} takes {_number(after.total_cycles)} {self.model.unit} instead of "
            f"{_number(before.total_cycles)}, {_number(after.total_wasted)} instead of "
            f"{_number(before.total_wasted)} of them waiting for collectives"
            f"{self._host_waiting()}; no order {self._bound()}",
        )

    def _bound(self) -> str:
        """A clause on how good any order can be, and how near to that the best one is."""
        least = sum(self.problem.cost) + self.walk.least_ticks
        if self.proved is None:
            return f"takes less than {_number(min(least / TICKS, self.best.total_cycles))}"
        now = self._value()
        if now <= self.proved:
            near = " (proved optimal)"
        elif self.proved:
            near = f" (within {_percent(now / self.proved - 1)} of the bound)"
        else:
            near = ""
        if counts_exposed(self.problem, self.objective):
            least_exposed = min(self.proved / TICKS, self.best.total_wasted)
            return f"waits less than {_number(least_exposed)} for collectives{near}"
        least = max(least, self.proved)
        return f"takes less than {_number(min(least / TICKS, self.best.total_cycles))}{near}"

    def _host_waiting(self) -> str:
        """A clause on waiting for copies to or from the host, if there is any."""
        before, after = host_waiting(self.plain), host_waiting(self.best)
        if not before and not after:
            return ""
        return f", {_number(after)} instead of {_number(before)} for copies to or from the host"

    def best_order(self) -> list[Instruction]:
        """O(nodes)."""
        return [self.instructions[node] for node in self.best_nodes]


def link(searches: Sequence[ComputationSearch]) -> None:
    """Tell searches of each other: whom they call, and who calls them. O(nodes) per call."""
    by_computation = {search.computation: search for search in searches}
    for callee in searches:
        calls = list(callee.computation.callers)
        known = all(call.parent in by_computation for call in calls)
        for call in calls:
            caller = by_computation.get(call.parent)
            if caller is not None:
                node = caller.instructions.index(call)
                caller.callees.setdefault(node, []).append(callee)
                states = caller.scheduler.life.states
                others = [c for c in call.called if c in states and c not in by_computation]
                caller.other_callees[node] = max((states[c].peak for c in others), default=0)
                if known:
                    callee.callers.append((caller, node))


def shares(state: SchedulingState) -> list[int]:
    """By resource how much a computation may use: what is called, no more than it does now, so
    that its callers' orders stay possible."""
    computation, limits = state.graph.computation, state.resources.remaining
    if computation.is_entry:
        return limits
    needs = state.tracker.computation_needs(computation)
    return [min(limit, needs.get(resource, 0)) for resource, limit in enumerate(limits)]


def _statistics(
    order: Sequence[Instruction], scheduler: Scheduler, model: LatencyModel
) -> ScheduleStatistics:
    tracker = scheduler.tracker
    return schedule_statistics(order, model, tracker.is_start, tracker.is_done)


def _is_worse(statistics: ScheduleStatistics, than: ScheduleStatistics) -> bool:
    tolerance = 1 + _ROUNDING
    return (
        statistics.total_cycles > than.total_cycles * tolerance
        or statistics.total_wasted > than.total_wasted * tolerance
    )


def _number(cycles: float) -> str:
    return f"{round(cycles, 1):,.12g}"


def _percent(part: float) -> str:
    """Rounded up, so that it is true."""
    return f"{ceil(part * 1000) / 10:g} %"
