"""List scheduling of one computation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hloopt.analysis.latency import LatencyModel
from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.explain import Explainer
from hloopt.scheduling.engine.groups import Groups, StuckGroup, prepare_top_down
from hloopt.scheduling.engine.hooks import NO_HOOKS, TargetHooks
from hloopt.scheduling.engine.stalls import Stalls
from hloopt.scheduling.graph.edges import BufferHazards
from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.memory.pressure import BufferLife
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.scheduling.rules.ready_order import ReadyOrder
from hloopt.scheduling.rules.rule import TargetRules
from hloopt.scheduling.state.state import SchedulingState


@dataclass(slots=True)
class Scheduler:
    """Schedules computations of a module, one at a time."""

    config: SchedulerConfig
    model: LatencyModel
    tracker: ResourceTracker
    hazards: BufferHazards
    life: BufferLife
    hooks: TargetHooks = NO_HOOKS
    explainer: Explainer | None = None
    """Notes why instructions are where they are."""
    stalls: Stalls | None = None
    """Notes why latencies stay exposed."""
    decisions: Counter[str] = field(default_factory=Counter)
    """The number of choices that each rule decided so far, by XLA's word for it."""
    graphs: dict[Computation, ScheduleGraph] = field(default_factory=dict)
    """The graph that the last order of each computation was made from."""
    stuck: dict[Computation, list[StuckGroup]] = field(default_factory=dict)
    """The groups that the last order of each computation takes apart, where XLA refuses."""

    def order(
        self,
        computation: Computation,
        preferences: Mapping[Instruction, float] | None = None,
        memory_limit: int | None = None,
    ) -> list[Instruction]:
        """The order to run a computation in, and its peak noted in `life`.

        Callees must have their final order. Near-linear in the edges. Raises
        PassRefused if resources do not suffice or a hint is malformed.
        """
        graph = ScheduleGraph.of(
            computation, self.model, self.tracker, self.hazards, self.hooks.edit_graph
        )
        self.graphs[computation] = graph
        for instruction, preference in (preferences or {}).items():
            graph.preference[graph.number[instruction]] = preference
        if self.config.top_down_scheduling:
            prepare_top_down(graph)
        limit = self.config.limit if memory_limit is None else memory_limit
        state = SchedulingState(graph, self.config, self.tracker, self.life, limit)
        run = _Run(state, self.hooks.rules)
        if self.explainer is not None:
            self.explainer.watch(state, run.order)
        if self.stalls is not None:
            self.stalls.watch(state, run.order)
        self.stuck[computation] = [] if run.groups is None else run.groups.stuck
        run.all()
        self.decisions.update(run.order.decisions)
        self.life.states[computation].peak = state.memory.pressure.peak
        order = [graph.instructions[node] for node in state.sequence]
        if not self.config.top_down_scheduling:
            order.reverse()
        return order


class _Run:
    def __init__(self, state: SchedulingState, target_rules: TargetRules) -> None:
        self.state = state
        self.order = ReadyOrder(state, target_rules)
        self.groups = Groups(state) if state.graph.group else None

    def all(self) -> None:
        """Take node after node until there are no more."""
        state, groups = self.state, self.groups
        state.begin()
        count = len(state.graph.instructions)
        while len(state.sequence) < count:
            if groups is not None and groups.schedule_one(most=True):
                continue
            node = self._pick()
            if node is not None:
                state.take(node)
            elif groups is None or not groups.schedule_one(most=False):
                raise self._blocked()

    def _pick(self) -> int | None:
        """The node to take next, out of the ready ones; None if there is none that may be taken."""
        state = self.state
        if state.ready.no_work:
            return state.ready.no_work.pop()
        node = self.order.choose()
        while node is None and self.groups is not None and self.groups.dissolve_smallest():
            node = self.order.choose()
        return node

    def _blocked(self) -> PassRefused:
        state, groups = self.state, self.groups
        if groups is not None and groups.stuck:
            return groups.failure_of_stuck()
        if groups is not None and groups.ready:
            return groups.failure()
        instructions = state.graph.instructions
        skipped = [
            f"{instructions[node].name}: Skipped due to {state.obstacle(node)}."
            for node in state.ready.nodes
        ]
        return PassRefused(
            "FindAndExtractBestNodeAvailable failed to find a node to schedule, skipped nodes: "
            + "; ".join(skipped)
            + ("; " if skipped else ""),
            help=self._way_out(),
        )

    def _way_out(self) -> str:
        """Advice for a computation of which no ready node may be taken."""
        state = self.state
        ready = state.ready.nodes
        if all(state.obstacle(node) == "kAnnotationNotReady" for node in ready):
            return (
                "scheduling groups wait for each other: "
                "legalize-scheduling-annotations{run_verification=true} names two of them"
            )
        for node in ready:
            short = state.resources.shortage(node)
            if short is None:
                continue
            resource, missing = short
            if resource.option and resource.limit is not None:
                return (
                    f"%{state.graph.instructions[node].name} needs {missing} more of "
                    f"{resource.name} than is left of {resource.limit}: "
                    f"give the pass {resource.option}={resource.limit + missing}"
                )
        return "dependencies make more operations overlap than the limits allow: raise a limit"
