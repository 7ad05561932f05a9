"""Two schedules side by side: how long they take, and how long they wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hloopt.diagnostics import HloError
from hloopt.ir.module import Module
from hloopt.ir.opcode import STARTS
from hloopt.reports.console.units import CycleUnit, human_share

if TYPE_CHECKING:
    from hloopt.analysis.stage import Stage
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.schedule.run import Preset, ScheduleSettings
    from hloopt.simulation import Simulation


class NotCompared(HloError):
    """The reason why schedules are not compared: there is no one model for both, or nothing to
    run."""


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """Runs of a module before and after a change, by one model on one set of streams."""

    before: Simulation | None
    """None where it has no schedule."""
    after: Simulation | None
    """Likewise; one of both has."""
    unit: CycleUnit
    cost_model: CostModelChoice
    """The origin of times."""
    preset: Preset
    """The preset whose streams run both."""
    doubts: tuple[str, ...] = ()
    """Clauses that say why the change is no gain or loss; empty where it is."""
    notes: list[str] = field(default_factory=list)
    """The assumptions behind the figures, one sentence each."""


def compare_schedules(
    before: Module,
    after: Module,
    cost_model: CostModelChoice | None = None,
    *,
    preset: Preset | None = None,
    are_versions: bool = False,
) -> ScheduleChange | None:
    """Runs of two modules by the same times, with the limits of a plain `hloopt schedule`.

    Both on the streams of `preset`, else of what both tell that they are for. Where neither a model
    nor a preset is given, and of versions of one module, only schedules with asynchronous
    operations are compared: None for others. Linear in what runs.

    Raises NotCompared for modules that tell differently whose streams they are for, unless they
    are versions, where passes add what tells; where only one is partitioned; and where neither is
    scheduled, if that is asked for. Raises HloError for a bad choice of a model.
    """
    if before is after:
        return None
    is_asked = not are_versions and (
        preset is not None or (cost_model is not None and cost_model.is_choice)
    )
    modules = before, after
    if not is_asked:
        if not after.is_scheduled:
            return None
        if not any(i.opcode in STARTS for module in modules for i in module.instructions()):
            return None  # before anything large is imported
    from hloopt.analysis.stage import Stage
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.schedule.run import ScheduleSettings, common_preset, preset_of
    from hloopt.reports.stage_notices import why_not_compared

    scheduled = [module for module in modules if module.is_scheduled]
    if not scheduled:
        raise NotCompared(_NOT_SCHEDULED)
    stages = [Stage.of(module) for module in modules]
    if reason := why_not_compared(stages):
        raise NotCompared(f"schedules are not compared: {reason}; `hloopt schedule` shows each")
    if preset is None and are_versions:
        preset = common_preset(modules)
    if preset is None:
        preset, *others = map(preset_of, scheduled)
        if any(other != preset for other in others):
            raise NotCompared(_differing(preset))
    choice = cost_model or CostModelChoice()
    if are_versions and not choice.is_choice:  # what is said of options is for commands with them
        choice = CostModelChoice(name="fixed")
    settings = ScheduleSettings(cost_model=choice, preset=preset)
    try:
        change = _compared(modules, stages, settings, preset)
    except HloError:  # of a module that makes no sense: others say so
        if cost_model is not None and cost_model.is_choice:  # or of what somebody asked for
            raise
        return None
    runs = [run for run in (change.before, change.after) if run is not None]
    if not is_asked and not any(any(run.operations()) for run in runs):
        return None
    return change


_NOT_SCHEDULED = (
    "schedules are not compared: neither module is scheduled; `hloopt analyze overlap` schedules "
    "both"
)


def _differing(first: Preset) -> str:
    names = ("first", "second") if first == "xla-gpu" else ("second", "first")
    return (
        f"schedules are not compared: the {names[0]} has what only XLA:GPU writes (preset "
        f"xla-gpu), the {names[1]} has not (xla-generic); --preset takes one of them for both"
    )


def _compared(
    modules: Sequence[Module],
    stages: Sequence[Stage],
    settings: ScheduleSettings,
    preset: Preset,
) -> ScheduleChange:
    from hloopt.cost_models import describe, model_notes
    from hloopt.reports.schedule.run import cycle_unit, guessed_share, run_module
    from hloopt.reports.stage_notices import partition_doubt

    doubts: list[str] = []
    guesses: list[str] = []
    runs: list[Simulation | None] = []
    for name, module, stage in zip(("the first", "the second"), modules, stages, strict=True):
        if not module.is_scheduled:
            doubts.append(f"{name} is not scheduled")
            runs.append(None)
            continue
        if doubt := partition_doubt(stage):
            doubts.append(doubt)
        run = run_module(module, settings, settings.config_for(module))
        runs.append(run)
        if run.unknown:
            doubts.append(f"nothing is known of how long %{run.unknown[0].name} takes in {name}")
        if (share := guessed_share(run)) is not None:
            guesses.append(f"{human_share(share)} of {name}")
    old, new = runs
    model = next(run.model for run in runs if run is not None)
    notes = [f"times by {describe(settings.cost_model)}, preset {preset}"]
    notes += model_notes(settings.cost_model, modules[0])
    if guesses:
        reason = ", for the model does not know" if any(run and run.guessed for run in runs) else ""
        notes.append(f"guessed{reason}: {', '.join(guesses)}")
    return ScheduleChange(
        *(old, new, cycle_unit(model), settings.cost_model, preset),
        *(tuple(dict.fromkeys(doubts)), notes),
    )
