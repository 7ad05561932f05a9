"""The report on hidden collectives: of a module, or of one before and after passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hloopt.analysis.stage import Stage
from hloopt.collector import collector_paused
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.reports.console.units import CycleUnit
from hloopt.reports.schedule.notes import notes_on
from hloopt.reports.schedule.order import scheduled_to_hide
from hloopt.reports.schedule.run import (
    Preset,
    ScheduleSettings,
    common_preset,
    cycle_unit,
    guessed_share,
    preset_of,
    run_module,
)
from hloopt.reports.stage_notices import cost_notices, why_not_compared
from hloopt.simulation.collectives import CollectiveRun, collective_runs, hidden_bytes
from hloopt.simulation.table_times import TableTimes


@dataclass(frozen=True, slots=True)
class OverlapRow:
    """A computation with collectives. All but `runs` is about one run: of a body, one trip."""

    computation: str
    loop: str
    """The while whose body it is; empty where it is none's."""
    runs: int
    runs_known: bool
    """Whether the trips of all loops around it are known; else they count as one."""
    collectives: int
    bytes: int
    """Of the larger of what each takes and what it leaves."""
    hidden_bytes: int
    """Moved while nothing waits for them: off the critical path."""
    duration: float
    """Cycles."""
    exposed: float
    """Of these, how many the device waits for collectives."""
    state_bytes: int
    """Bytes that the loop carries from trip to trip."""

    @classmethod
    def of(cls, found: CollectiveRun) -> OverlapRow:
        run, moving = found.run, found.moving
        return cls(
            computation=run.computation.name,
            loop=found.loop.name if found.loop else "",
            runs=run.runs,
            runs_known=run.runs_known,
            collectives=len(moving),
            bytes=sum(operation.size for operation in moving),
            hidden_bytes=sum(map(hidden_bytes, moving)),
            duration=run.duration,
            exposed=found.exposed,
            state_bytes=found.state_bytes,
        )


@dataclass(frozen=True, slots=True)
class OverlapReport:
    """A module under a model of time."""

    module: str
    order: str
    """`schedule`, or who found one for a module without."""
    is_scheduled: bool
    is_partitioned: bool
    """False where the partitioner may yet make collectives."""
    preset: Preset
    cost_model: CostModelChoice
    unit: CycleUnit
    rows: tuple[OverlapRow, ...]
    notices: tuple[str, ...]
    """The subject of the figures, where that is not one device."""
    notes: tuple[str, ...]
    """The assumptions behind the figures, one sentence each."""
    guessed_share: float | None
    """The part of the time that is guessed; None where there are no times."""
    table_times: TableTimes | None
    """The difference that smoothing makes; None where no time is from a table of measurements."""

    @classmethod
    def of(cls, module: Module, settings: ScheduleSettings) -> OverlapReport:
        """Run a module by its schedule; of one without, a copy by that of
        latency-hiding-scheduler. Near-linear in the module.

        Raises HloError for a bad choice of a model, or a module that makes no sense.
        """
        with collector_paused():
            stage = Stage.of(module)
            scheduled, order = scheduled_to_hide(module, settings)
            config = settings.config_for(scheduled)
            simulation = run_module(scheduled, settings, config)
            return cls(
                module.name,
                order,
                module.is_scheduled,
                stage.partitioned.holds is True,
                config.preset,
                settings.cost_model,
                cycle_unit(simulation.model),
                tuple(map(OverlapRow.of, collective_runs(simulation))),
                cost_notices(stage, estimates_fusion=settings.cost_model.estimates_fusion),
                tuple(notes_on(simulation, settings)),
                guessed_share(simulation),
                TableTimes.of(simulation),
            )

    def total(self, figure: Callable[[OverlapRow], float]) -> float:
        """A figure of one run of the module: of all rows, each as often as it runs."""
        return sum(row.runs * figure(row) for row in self.rows)

    @property
    def bytes(self) -> int:
        return round(self.total(lambda row: row.bytes))

    @property
    def hidden_bytes(self) -> int:
        return round(self.total(lambda row: row.hidden_bytes))

    @property
    def exposed(self) -> float:
        return self.total(lambda row: row.exposed)

    @property
    def state_bytes(self) -> int:
        return sum(row.state_bytes for row in self.rows)


def overlap_reports(modules: Sequence[Module], settings: ScheduleSettings) -> list[OverlapReport]:
    """Reports on versions of one module. Without a preset in the settings all are run on the
    streams of XLA:GPU if any of them tells that it is for a GPU: passes add what tells.

    Raises HloError if only one of them is partitioned.
    """
    if reason := why_not_compared([Stage.of(module) for module in modules]):
        raise HloError(f"modules cannot be compared: {reason}")
    if settings.preset is not None or len({*map(preset_of, modules)}) == 1:
        return [OverlapReport.of(module, settings) for module in modules]
    settings = replace(settings, preset=common_preset(modules))
    reports = [OverlapReport.of(module, settings) for module in modules]
    return [replace(report, notes=(*report.notes, _ONE_PRESET)) for report in reports]


_ONE_PRESET = (
    "only one of them has what XLA:GPU writes: both run on its streams; --preset chooses others"
)


Pair = tuple[OverlapRow | None, OverlapRow | None]
"""A computation before and after passes."""

_NUMBERED = re.compile(r"(\.clone|\.\d+)+$")


def matched(before: OverlapReport, after: OverlapReport) -> list[Pair]:
    """Computations of both by their names, numbers and `.clone` at the end aside.

    Several of one name go together in order. O(rows).
    """
    waiting: dict[str, list[OverlapRow]] = {}
    for row in after.rows:
        waiting.setdefault(_NUMBERED.sub("", row.computation), []).append(row)
    pairs: list[Pair] = []
    for row in before.rows:
        same = waiting.get(_NUMBERED.sub("", row.computation))
        pairs.append((row, same.pop(0) if same else None))
    return pairs + [(None, row) for rows in waiting.values() for row in rows]
