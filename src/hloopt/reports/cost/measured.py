"""Measured times of instructions, beside the least times of a cost report."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.latency import Origin
from hloopt.cost_models import CostModelChoice, latency_model
from hloopt.ir import Module

_MEASURED = (Origin.TABLE, Origin.PROFILE)


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Times of a module's instructions in a profile or cost table."""

    source: str
    """The path of the file."""
    seconds: dict[str, float]
    """Of one run, by the name of the instruction."""

    @classmethod
    def of(cls, module: Module, choice: CostModelChoice) -> MeasuredTimes | None:
        """The times of the file in `choice`; None without one. O(instructions). Raises HloError."""
        source = choice.profile or choice.cost_table
        if source is None:
            return None
        model = latency_model(choice, module, is_gpu=True)
        seconds = {}
        for instruction in module.instructions():
            time = model.node_time(instruction)
            if time.origin in _MEASURED:
                seconds[instruction.name] = time.cycles / model.cycles_per_microsecond * 1e-6
        return cls(source, seconds)
