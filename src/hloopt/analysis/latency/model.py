"""What a model of time answers."""

from __future__ import annotations

from typing import Protocol

from hloopt.ir import Instruction
from hloopt.ir.frontend_attributes import frontend_attribute

ORDINARY_EDGE = 1.0
"""Cycles between dependent instructions that are not start and done of an operation."""


class LatencyModel(Protocol):
    """Times in cycles, whatever a cycle is: an abstract unit or a microsecond."""

    @property
    def cycles_per_microsecond(self) -> float:
        """What turns times of people into cycles."""

    def node_cost(self, instruction: Instruction) -> float:
        """How long an instruction keeps what runs it busy."""

    def latency(self, source: Instruction, target: Instruction) -> float:
        """How long after `source` an instruction that depends on it, `target`, may run."""


def stated_latency(instruction: Instruction, cycles_per_microsecond: float) -> float | None:
    """Cycles by the frontend attribute `latency_metadata`, in nanoseconds; None without one."""
    text = frontend_attribute(instruction, "latency_metadata")
    try:
        nanoseconds = int(text) if text is not None else None
    except ValueError:
        return None
    return None if nanoseconds is None else nanoseconds * cycles_per_microsecond / 1000.0
