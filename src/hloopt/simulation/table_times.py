"""The times of a run that are from tables of measurements: as these are, and smoothed."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import Any

from hloopt.analysis.latency import Origin
from hloopt.analysis.latency.model import TableTime
from hloopt.ir import Instruction
from hloopt.simulation.execution import Simulation

_TABLES = (Origin.COLLECTIVE_TABLE, Origin.MATMUL_TABLE)
_SAME = 1e-3
"""The relative difference up to which two times count as the same."""


@dataclass(frozen=True, slots=True)
class TableTimes:
    """The difference that smoothing makes to the times of one run."""

    count: int
    """Instructions and operations whose time is from a table."""
    differing: int
    """The ones to which smoothing gives another time."""
    largest: Instruction | None
    """The instruction with the most microseconds between both; None where none differs."""
    times: TableTime | None
    """Its times."""

    @classmethod
    def of(cls, simulation: Simulation) -> TableTimes | None:
        """The difference in a run; None where no time is from a table. O(instructions that run)."""
        found = [
            (instruction, times)
            for instruction in _from_tables(simulation)
            if (times := simulation.model.by_table(instruction)) is not None
        ]
        if not found:
            return None
        differing = [pair for pair in found if not isclose(*pair[1], rel_tol=_SAME)]
        largest = max(differing, key=lambda pair: abs(pair[1][0] - pair[1][1]), default=None)
        return cls(len(found), len(differing), *((None, None) if largest is None else largest))

    def to_json(self) -> dict[str, Any]:
        """The difference as plain data, in microseconds."""
        largest = None
        if self.largest is not None and self.times is not None:
            largest = {
                "instruction": self.largest.name,
                "measured": self.times.measured,
                "smoothed": self.times.smoothed,
            }
        return {"times": self.count, "differing": self.differing, "largest": largest}


def _from_tables(simulation: Simulation) -> list[Instruction]:
    """The instructions and starts whose time is from a table, each once, in the order they run."""
    found: dict[Instruction, None] = {}
    for run in simulation.runs.values():
        if run.runs:
            for instruction, origin in zip(run.order, run.origins, strict=True):
                if origin in _TABLES:
                    found[instruction] = None
            for operation in run.operations:
                if operation.origin in _TABLES:
                    found[operation.start] = None
    return list(found)
