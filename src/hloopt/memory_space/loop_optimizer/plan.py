"""The demands of plans for loops on the allocations of uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from hloopt.analysis.dataflow import Use
from hloopt.ir import Instruction
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.loop_optimizer.finding import UnrolledLoop, find_loops
from hloopt.memory_space.loop_optimizer.optimizer import LoopPlacement, optimize_loop
from hloopt.memory_space.options.parts import LoopOptimizerOptions
from hloopt.memory_space.program import Program


class Choice(Enum):
    """Where a use finds its value."""

    STAY = auto()
    """In alternate memory, where it has been since its definition or an earlier use."""
    DEFAULT = auto()
    """In default memory."""
    PREFETCH = auto()
    """In alternate memory, where a copy brings it."""


@dataclass(frozen=True, slots=True)
class PlannedUse:
    """The choice for a use."""

    choice: Choice
    start_after: Instruction | None = None
    """The step after which the prefetch should start."""


@dataclass(slots=True)
class LoopPlan:
    """The choices for the uses in all unrolled loops of a program."""

    uses: dict[Use, PlannedUse] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        program: Program,
        costs: MemorySpaceCosts,
        options: LoopOptimizerOptions,
        *,
        max_size: int,
        alignment: int,
        is_allowed: Callable[[Buffer], bool],
    ) -> LoopPlan:
        """Plan all loops of at least `min_num_iterations` iterations.

        O(operands · lengths of iterations that occur), and O(values · chunks) of one iteration per
        loop.
        """
        plan = cls()
        for loop in find_loops(program.module, program.schedule, options.min_num_iterations):
            found = optimize_loop(
                program,
                costs,
                loop,
                options,
                max_size=max_size,
                alignment=alignment,
                is_allowed=is_allowed,
            )
            for placement in found.placements:
                plan._repeat(program, loop, placement)
        return plan

    def _repeat(self, program: Program, loop: UnrolledLoop, placement: LoopPlacement) -> None:
        """Choose the same for all iterations."""
        steps = program.schedule.steps
        earliest, _ = program.schedule.spans[steps[loop.start].parent]
        for number, (index, use) in enumerate(placement.uses):
            choice = Choice.DEFAULT if placement.allocation is None else Choice.STAY
            prefetch = placement.prefetch if not number else None
            for iteration in range(loop.iterations):
                time = loop.start + iteration * loop.size
                after = None
                if prefetch is not None:
                    choice = Choice.PREFETCH
                    after = steps[max(time + prefetch.start_after, earliest)]
                own = Use(steps[time + index], use.operand, use.slot)
                self.uses[own] = PlannedUse(choice, after)
