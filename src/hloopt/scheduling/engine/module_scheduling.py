"""The scheduling of the computations of one module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.latency import LatencyModel
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.ordering import depth_first
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.memory.backends import CPU, GPU
from hloopt.memory.buffers import Buffers
from hloopt.memory.schedulers import fragmentation
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.hooks import NO_HOOKS, TargetHooks
from hloopt.scheduling.engine.scheduler import Scheduler
from hloopt.scheduling.graph.edges import BufferHazards
from hloopt.scheduling.memory.pressure import BufferLife
from hloopt.scheduling.resources.hints import asks_for_delay

_FUSION = Opcode.FUSION  # a member of an enum is slow to look up in a loop
_LESS_MEMORY = 0.9
"""The part of the limit that is left when scheduling again."""


def _run_in_fusions(module: Module) -> set[Computation]:
    """The bodies of fusions, and what only these call: values there count in XLA's numbers alone.

    Near-complete where callees stand before callers, as in what XLA prints. O(calls).
    """
    found: set[Computation] = set()
    for computation in reversed(module.computations.values()):
        for caller in computation.callers:
            if caller.opcode is not _FUSION and caller.parent not in found:
                break
        else:
            if computation.callers:
                found.add(computation)
    return found


@dataclass(slots=True)
class ModuleScheduling:
    """A module and the scheduler of its computations."""

    module: Module
    scheduler: Scheduler

    @classmethod
    def of(
        cls,
        module: Module,
        config: SchedulerConfig,
        model: LatencyModel,
        hooks: TargetHooks = NO_HOOKS,
    ) -> ModuleScheduling:
        """The scheduling of a module by a resolved configuration. O(slots of all instructions)."""
        is_gpu = config.preset == "xla-gpu"
        flow = Dataflow.of(module, leave_out=_run_in_fusions(module).__contains__)
        buffers = Buffers.of(flow)
        life = BufferLife.of(flow, buffers, shape_bytes if is_gpu else leaf_bytes)
        hazards = BufferHazards(flow, buffers)
        return cls(module, Scheduler(config, model, hooks.tracker(config), hazards, life, hooks))

    def orders(self) -> dict[Computation, list[Instruction]]:
        """The present order of every computation that has values. O(their instructions)."""
        covered = self.scheduler.hazards.flow.scope.orders
        return {computation: list(computation.instructions) for computation in covered}

    def computations(self) -> list[Computation]:
        """The computations with asynchronous operations or scheduling hints, callees first.

        What nothing calls any more is never run, and left as it is.
        """
        tracker, states = self.scheduler.tracker, self.scheduler.life.states

        def run_by(computation: Computation) -> list[Computation]:
            calls = [i.called for i in computation.instructions if i.called]
            return [callee for called in calls for callee in called if callee in states]

        return [
            computation
            for computation in depth_first([self.module.entry], run_by)
            if not computation.is_fusion
            and any(
                asks_for_delay(instruction)
                or (
                    instruction.opcode in tracker.asynchronous
                    and (tracker.is_start(instruction) or tracker.is_done(instruction))
                )
                for instruction in computation.instructions
            )
        ]

    def schedule_by_rules(
        self, computations: list[Computation], preferences: Mapping[Instruction, float]
    ) -> None:
        """Schedule computations, callees first, and again with less memory as `rerun` asks.

        Of two ready instructions with `preferences` the larger is nearer to the end.
        """
        config = self.scheduler.config
        limit = current = config.limit
        self.schedule(computations, limit, preferences)
        for _ in range(config.rerun):
            if self.peak() <= limit:
                break
            current = int(current * _LESS_MEMORY)
            self.scheduler.life.restart()
            self.schedule(computations, current, preferences)

    def schedule(
        self,
        computations: list[Computation],
        memory_limit: int,
        preferences: Mapping[Instruction, float],
    ) -> None:
        """Schedule computations, callees first, once."""
        own: dict[Computation, dict[Instruction, float]] = {}
        for instruction, preference in preferences.items():
            own.setdefault(instruction.parent, {})[instruction] = preference
        for computation in computations:
            order = self.scheduler.order(computation, own.get(computation), memory_limit)
            if order != list(computation.instructions):
                computation.reorder(order)
            self.scheduler.tracker.forget(computation)

    def peak(self) -> int:
        """The peak that decides about another run."""
        scheduler = self.scheduler
        peak = scheduler.life.peak
        if scheduler.config.estimate_fragmentation_size:
            backend = GPU if scheduler.config.preset == "xla-gpu" else CPU
            peak += fragmentation(scheduler.hazards.buffers, backend)
        return peak
