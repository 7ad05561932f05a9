"""Two modules compared: their instructions, and what the difference changes in memory and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.cost_models import CostModelChoice
    from hloopt.ir.module import Module
    from hloopt.memory.model import MemoryReport
    from hloopt.reports.diff.findings import ModuleDiff
    from hloopt.reports.schedule.comparison import ScheduleChange
    from hloopt.reports.schedule.run import Preset


class ModuleComparison(NamedTuple):
    """The differences, with what they change."""

    diff: ModuleDiff
    memory: tuple[MemoryReport, MemoryReport] | None = None
    why_no_memory: str | None = None
    schedule: ScheduleChange | None = None
    why_no_schedule: str | None = None


def compare_modules(
    modules: tuple[Module, Module],
    ignored: frozenset[str],
    memory: bool | None,
    cost_model: CostModelChoice,
    preset: Preset | None,
) -> ModuleComparison:
    """Compare two modules; memory and schedules only where they differ and are well formed.

    `ignored` are classes of content, `memory` None compares that of modules that are not too large.
    Raises HloError for a bad cost model.
    """
    from hloopt.reports.diff.comparison import diff_modules
    from hloopt.reports.memory.comparison import compare_memory
    from hloopt.reports.schedule.comparison import NotCompared, compare_schedules
    from hloopt.verifier.well_formed import why_invalid

    invalid = [error for error in map(why_invalid, modules) if error is not None]
    diff = diff_modules(*modules, ignored)
    if diff.is_identical:
        return ModuleComparison(diff)
    if invalid:
        return _not_valid(diff, modules, memory, invalid[0].message)
    reports, note = compare_memory(*modules, memory)
    try:
        schedule = compare_schedules(*modules, cost_model, preset=preset)
    except NotCompared as reason:
        return ModuleComparison(diff, reports, note, None, reason.message)
    return ModuleComparison(diff, reports, note, schedule)


def _not_valid(
    diff: ModuleDiff, modules: tuple[Module, Module], memory: bool | None, reason: str
) -> ModuleComparison:
    """The findings on modules that break a rule: their texts differ."""
    why_no_schedule = None
    if any(module.is_scheduled for module in modules):
        why_no_schedule = f"schedules are not compared: {reason}"
    why_no_memory = f"no memory report: {reason}" if memory is not False else None
    return ModuleComparison(diff, None, why_no_memory, None, why_no_schedule)


def render_comparison(
    found: ModuleComparison,
    console: Console,
    *,
    side_by_side: bool = False,
    top: int = 20,
    text: bool = False,
) -> None:
    """Print the differences, `top` rows of each table, and the changes of memory and schedule.

    `text` shows the texts of changed instructions, `side_by_side` on wide consoles in two columns.
    """
    from hloopt.reports.diff.terminal import render_diff
    from hloopt.reports.memory.comparison_terminal import render_memory_change
    from hloopt.reports.schedule.comparison_terminal import render_schedule_change

    render_diff(found.diff, console, side_by_side=side_by_side, top=top, text=text)
    if found.memory is not None:
        console.print()
        render_memory_change(*found.memory, console, found.diff.partners)
    elif found.why_no_memory is not None:
        console.print()
        console.print(found.why_no_memory, style="dim")
    if found.schedule is not None:
        console.print()
        render_schedule_change(found.schedule, console)
    elif found.why_no_schedule is not None:
        console.print()
        console.print(found.why_no_schedule, style="dim")
