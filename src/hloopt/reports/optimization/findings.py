"""A step before and after a search: its time, its memory, and the decisions that were made."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import Source
from hloopt.ir.module import Module
from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.reports.outcome import Outcome
from hloopt.reports.schedule.comparison import NotCompared, ScheduleChange, compare_schedules
from hloopt.text import parse_module


@dataclass(slots=True)
class OptimizationFindings:
    """The fate of a program that a search looked for decisions on."""

    outcome: Outcome
    before: Module
    after: Module
    limit: int | None
    """Bytes that the program may take on a device; None: as much as before, in whole pages of
    2 MiB."""
    seed: int
    allocated: tuple[int, int] | None
    """Bytes that XLA:GPU's buffer assignment takes before and after; None without a schedule."""
    schedule: ScheduleChange | None
    """None where there is no schedule: then the outcome's remarks alone tell of times."""
    notes: list[str]
    """The reasons why there are no figures."""

    @classmethod
    def of(
        cls, outcome: Outcome, choice: CostModelChoice, limit: int | None, seed: int
    ) -> OptimizationFindings:
        """Compare what went into a search with what came out of it. Near-linear in the module."""
        name = outcome.source.name if outcome.source else outcome.name
        before = parse_module(Source(name, outcome.before))
        after = parse_module(Source(name, outcome.text))
        allocated, schedule, notes = None, None, []
        if before.is_scheduled and after.is_scheduled:
            allocated = (allocated_bytes(before), allocated_bytes(after))
            try:
                schedule = compare_schedules(before, after, choice, preset="xla-gpu")
            except NotCompared as reason:
                notes.append(reason.message)
        else:
            notes.append(_NO_SCHEDULE)
        return cls(outcome, before, after, limit, seed, allocated, schedule, notes)

    @property
    def fits(self) -> bool | None:
        """Whether the result fits; None where there is no limit, or memory is not known."""
        if self.limit is None or self.allocated is None:
            return None
        return self.allocated[1] <= self.limit

    @property
    def decisions(self) -> list[str]:
        """Each decision with what it bought, in the order in which they were made."""
        return self._told("analysis")

    @property
    def reasons(self) -> list[str]:
        """The reasons why nothing was changed."""
        return self._told("missed")

    @property
    def tried(self) -> int:
        """The sets of decisions that were tried."""
        return self._counted("decisions tried")

    @property
    def iterations(self) -> int:
        """The number of iterations that repeats the result."""
        return self._counted("iterations")

    def _told(self, kind: str) -> list[str]:
        return [remark.reason for remark in self.outcome.result.remarks if remark.kind == kind]

    def _counted(self, what: str) -> int:
        return sum(run.statistics.get(what, 0) for run in self.outcome.result.runs)


_NO_SCHEDULE = (
    "the module has no schedule, so its times and memory are not known: what was found is that of "
    "the order that XLA:GPU's scheduler would give it"
)


def allocated_bytes(module: Module) -> int:
    """The bytes that XLA:GPU's buffer assignment takes on a device for a scheduled module."""
    return analyze_memory(module, backend=GPU).statistics.total_allocation_bytes
