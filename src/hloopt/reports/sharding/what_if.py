"""The cost of a partitioned program before and after its shardings were changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import Runs, runs_with_parts
from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.cost_models import CostModelChoice
from hloopt.ir.module import Module
from hloopt.reports.console.units import CycleUnit
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.sharding.changes import Change


@dataclass(slots=True)
class Amount:
    """The collectives of a kind."""

    count: int = 0
    """In the text, each once."""
    runs: int = 0
    """In one run of the program, loops by their trips."""
    bytes: int = 0
    """Bytes that a device sends in all runs."""


@dataclass(slots=True)
class Figures:
    """The figures of a partitioned program, of one device and one run."""

    kinds: dict[str, Amount]
    """Collectives by opcode."""
    peak: int
    """Bytes in use at once, as `hloopt schedule` counts them."""
    exposed: float
    """Time that waits for collectives and copies, in the unit of the report."""
    makespan: float

    @property
    def total(self) -> Amount:
        """All kinds together."""
        found = self.kinds.values()
        return Amount(
            sum(a.count for a in found), sum(a.runs for a in found), sum(a.bytes for a in found)
        )


@dataclass(slots=True)
class WhatIf:
    """A partitioned program beside the one that changed shardings make."""

    module: str
    partitions: int
    changes: list[Change]
    cost_model: CostModelChoice
    unit: CycleUnit
    before: Figures
    after: Figures
    notes: list[str]

    @property
    def kinds(self) -> list[str]:
        """The opcodes of collectives on either side, those that send most first."""
        names = dict.fromkeys((*self.before.kinds, *self.after.kinds))
        empty = Amount()

        def most(kind: str) -> int:
            sides = self.before.kinds, self.after.kinds
            return max(side.get(kind, empty).bytes for side in sides)

        return sorted(names, key=lambda kind: (-most(kind), kind))


def compare(
    before: Module, after: Module, changes: Sequence[Change], cost_model: CostModelChoice
) -> WhatIf:
    """Compare what the partitioner made of a program and of a changed one.

    Times are those of `cost_model`. Near-linear. Raises HloError for a bad choice of a model.
    """
    settings = ScheduleSettings(cost_model=cost_model)
    left = ScheduleFindings.of(before, settings)
    right = ScheduleFindings.of(after, settings)
    return WhatIf(
        before.name,
        before.num_partitions,
        list(changes),
        left.cost_model,
        left.unit,
        _figures(before, left),
        _figures(after, right),
        list(_notes(left.notes, right.notes)),
    )


def _notes(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Those of both sides once, others with their side."""
    for note in before:
        yield note if note in after else f"before: {note}"
    yield from (f"after: {note}" for note in after if note not in before)


def _figures(module: Module, found: ScheduleFindings) -> Figures:
    runs = runs_with_parts(module, CostAnalysis(module))
    kinds: dict[str, Amount] = {}
    for collective in collectives_of(module):
        amount = kinds.setdefault(collective.kind.value, Amount())
        times = runs.get(collective.instruction.parent, Runs(0, True)).times
        amount.count += 1
        amount.runs += times
        amount.bytes += times * collective.wire
    simulation = found.simulation
    return Figures(kinds, found.memory.peak, simulation.exposed, simulation.makespan)
