"""Two schedules compared, for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import human_change
from hloopt.reports.schedule.comparison import ScheduleChange

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.simulation import Simulation


def render_schedule_change(change: ScheduleChange, console: Console) -> None:
    """Print a table of each figure before and after.

    A change is good or bad only where figures are times and there are no doubts.
    """
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    unit = change.unit
    table = ReportTable()
    abstract = " (cycles, XLA's constants)" if unit.seconds is None else ""
    table.add_column(f"schedule{abstract}", style="bold")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right")
    for name, old, new in _rows(change):
        style = ""
        is_verdict = not change.doubts and unit.seconds is not None
        if is_verdict and old is not None and new is not None and old != new:
            style = "green" if new < old else "red"
        text = "" if change.doubts else _change(old, new)
        cells = ["-" if figure is None else unit.text(figure) for figure in (old, new)]
        table.add_row(name, *cells, Text(text, style=style))
    console.print(table)
    if change.doubts:
        print_footnote(console, f"figures only, no verdict: {'; '.join(change.doubts)}")
    for note in change.notes:
        print_footnote(console, note)


def _rows(change: ScheduleChange) -> Iterator[tuple[str, float | None, float | None]]:
    """Names with figures before and after."""
    before, after = change.before, change.after
    figures: dict[str, Callable[[Simulation], float]] = {
        "makespan": lambda run: run.makespan,
        "exposed": lambda run: run.exposed,
    }
    for name, figure in figures.items():
        yield (
            name,
            None if before is None else figure(before),
            None if after is None else figure(after),
        )
    old, new = ({} if run is None else run.exposed_by_kind() for run in (before, after))
    for kind in dict.fromkeys((*old, *new)):
        if old.get(kind) or new.get(kind):
            yield (
                f"  {kind.value}",
                None if before is None else old.get(kind, 0.0),
                None if after is None else new.get(kind, 0.0),
            )


def _change(old: float | None, new: float | None) -> str:
    if old is None or new is None:
        return ""
    if old == new:
        return "="
    return human_change(old, new) if old else "new"
