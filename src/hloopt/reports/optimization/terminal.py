"""The result of a search, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from hloopt.diagnostics import counted, printable
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.table import ReportTable
from hloopt.reports.console.units import human_bytes, human_change, page_width
from hloopt.reports.optimization.findings import OptimizationFindings
from hloopt.reports.schedule.comparison_terminal import render_schedule_change

if TYPE_CHECKING:
    from rich.console import Console


def render_optimization(found: OptimizationFindings, console: Console) -> None:
    """Print step and memory before and after, then the decisions, and how to repeat them."""
    if found.schedule is not None:
        render_schedule_change(found.schedule, console)
        console.print()
    if found.allocated is not None:
        console.print(_memory(found, *found.allocated))
        console.print()
    if found.decisions or found.reasons:
        console.print(_decisions(found), width=page_width(console))
        console.print()
    width = page_width(console)
    for note in notes_on(found):
        print_footnote(console, note, width=width)


def notes_on(found: OptimizationFindings) -> list[str]:
    """How far the search came and how to repeat it, then what the figures rest on."""
    notes = [*found.outcome.result.notes, *found.notes]
    return [_repetition(found), *notes] if found.iterations else notes


def _repetition(found: OptimizationFindings) -> str:
    return (
        f"{counted(found.tried, 'set')} of decisions tried: --iterations {found.iterations} --seed "
        f"{found.seed} gives this result again"
    )


def _decisions(found: OptimizationFindings) -> ReportTable:
    """The decisions in order, or the reason why there are none."""
    table = ReportTable()
    table.add_column("", justify="right")
    head = "decisions, each with what it bought" if found.decisions else "no decisions"
    table.add_column(head, wraps=True)
    for number, decision in enumerate(found.decisions, 1):
        table.add_row(str(number), printable(decision))
    for reason in found.reasons:
        table.add_row("", printable(reason))
    return table


def _memory(found: OptimizationFindings, before: int, after: int) -> ReportTable:
    table = ReportTable()
    table.add_column("memory", style="bold")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right")
    style = "" if after == before else "green" if after < before else "red"
    change = "=" if after == before else human_change(before, after)
    table.add_row("allocated", human_bytes(before), human_bytes(after), Text(change, style=style))
    if found.limit is not None:
        verdict = Text("fits", style="green") if found.fits else Text("too much", style="red")
        table.add_row("limit", "", human_bytes(found.limit), verdict)
    return table
