"""Statistics of a schedule under a latency model: total time, and time spent waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hloopt.analysis.async_operations import async_form, is_host_transfer
from hloopt.analysis.latency.model import LatencyModel
from hloopt.ir import Instruction, Opcode

_COUNTED = frozenset(
    (
        *(Opcode.ALL_GATHER, Opcode.ALL_REDUCE, Opcode.COLLECTIVE_BROADCAST),
        *(Opcode.COLLECTIVE_PERMUTE, Opcode.ALL_TO_ALL, Opcode.RAGGED_ALL_TO_ALL),
        *(Opcode.REDUCE_SCATTER, Opcode.SEND, Opcode.RECV, Opcode.CALL),
    )
)
"""Kinds of operations whose waiting time XLA reports; waiting for others counts in the total."""


@dataclass(slots=True)
class ScheduleStatistics:
    """Times in the cycles of the model."""

    total_cycles: float = 0.0
    wasted: dict[Opcode, float] = field(default_factory=dict)
    """By kind of operation, how long dones wait for it; kinds without waiting have no entry."""
    exposed: dict[Instruction, float] = field(default_factory=dict)
    """By done how long it waits, of every operation whose start is in the same computation."""

    @property
    def total_wasted(self) -> float:
        return sum(self.wasted.values())


def host_waiting(statistics: ScheduleStatistics) -> float:
    """Cycles that dones wait for copies and transfers to or from the host. O(operations)."""
    return sum(
        wait
        for done, wait in statistics.exposed.items()
        if wait and _is_with_host(done.operands[0])
    )


def _is_with_host(start: Instruction) -> bool:
    shapes = start.shape, *(operand.shape for operand in start.operands)
    return is_host_transfer(start) or any(
        leaf.is_on_host for shape in shapes for leaf in shape.leaves()
    )


def counts_as_exposed(start: Instruction) -> bool:
    """Whether XLA reports how long an operation's done waits. O(1)."""
    return async_form(start).inner in _COUNTED


def schedule_statistics(
    order: Sequence[Instruction],
    model: LatencyModel,
    is_start: Callable[[Instruction], bool],
    is_done: Callable[[Instruction], bool],
) -> ScheduleStatistics:
    """The statistics that XLA prints of one computation's schedule. O(instructions).

    A loop's body counts in its own computation only. `is_start` and `is_done` say which
    operations run beside others.
    """
    result = ScheduleStatistics()
    started: dict[Instruction, int] = {}
    time = 0.0
    for instruction in order:
        time += model.node_cost(instruction)
        if is_start(instruction):
            started[instruction] = int(time)
        elif is_done(instruction):
            start = instruction.operands[0]
            begin = started.get(start)
            if begin is None:
                continue
            wait = max(0.0, model.latency(start, instruction) - (time - begin))
            result.exposed[instruction] = wait
            kind = async_form(start).inner
            if wait and kind in _COUNTED:
                result.wasted[kind] = result.wasted.get(kind, 0.0) + wait
            time += wait
    result.total_cycles = time
    return result
