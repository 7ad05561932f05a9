"""The report of times as a terminal page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hloopt.analysis.cost.runs import ONCE
from hloopt.analysis.latency import Origin
from hloopt.cost_models import describe
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import CycleUnit, columns, head, middle, more_text, page_width
from hloopt.reports.schedule.latency import LatencyReport, OriginTotal, TimedRow, by_origin
from hloopt.reports.stage_notices import render_notices

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.reports.console.table import ReportTable


def render_latency(report: LatencyReport, console: Console, *, top: int = 10) -> None:
    """Print what each source of times says, then the `top` instructions and operations."""
    from rich.text import Text

    width = page_width(console)
    title = Text.assemble(
        "Times of ",
        (report.module, "bold"),
        f" by {describe(report.model)}, preset {report.preset}",
    )
    console.print(title, width=width)
    render_notices(report.notices, console, width)
    for what, rows in (("instruction", report.instructions), ("operation", report.operations)):
        if rows:
            console.print()
            console.print(_origins(f"{what}s", rows, report.unit), width=width)
            console.print()
            has_shares = not report.notices
            console.print(_rows(what, rows, report.unit, top, has_shares=has_shares), width=width)
    if report.notes:
        console.print()
    for note in report.notes:
        print_footnote(console, note, width=width)


def _origins(what: str, rows: list[TimedRow], unit: CycleUnit) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    table.add_column("from")
    table.add_column("error", style="dim")
    table.add_column(what, justify="right")
    table.add_column("cycles" if unit.seconds is None else "time", justify="right", stays=True)
    table.add_column("mostly", style="dim")
    for total in by_origin(rows):
        style = "yellow" if total.origin in (Origin.GUESS, Origin.UNKNOWN) else ""
        time, kinds = unit.text(total.cycles), _kinds(total)
        error = total.origin.error_class.value
        table.add_row(total.origin.value, error, f"{total.count:,}", time, kinds, style=style)
    whole = unit.text(sum(row.total for row in rows))
    table.add_row("all", "", f"{len(rows):,}", whole, "", style="bold")
    return table


_SHOWN_KINDS = 3


def _kinds(total: OriginTotal) -> str:
    """The most frequent kinds: `64 custom-call, 2 copy`."""
    common = total.kinds.most_common(_SHOWN_KINDS)
    shown = ", ".join(f"{count:,} {kind}" for kind, count in common)
    return shown + (" …" if len(total.kinds) > _SHOWN_KINDS else "")


def _rows(
    what: str, rows: list[TimedRow], unit: CycleUnit, top: int, *, has_shares: bool
) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    for name in ("cycles" if unit.seconds is None else "time", "share", "runs"):
        table.add_column(name, justify="right", shown=has_shares or name != "share")
    table.add_column("from")
    table.add_column(what)
    whole = sum(row.total for row in rows)
    for row in rows[:top]:
        runs = "x?" if not row.runs.is_known else "" if row.runs == ONCE else f"x{row.runs.times:,}"
        share = f"{row.total / whole:.1%}" if whole else ""
        time = unit.text(row.total)
        table.add_row(time, share, runs, row.time.origin.value, partial(_label, row))
    if len(rows) > top:
        rest = sum(row.total for row in rows[top:])
        share = f"{rest / whole:.1%}" if whole else ""
        more = partial(more_text, len(rows) - top)
        table.add_row(unit.text(rest), share, "", "", more, style="dim")
    return table


def _label(row: TimedRow, room: int) -> str:
    """The name, and the kind where there is room for a part of it."""
    name = middle(f"%{row.instruction.name}", room)
    rest = room - columns(name) - 1
    return f"{name} {head(row.kind, rest)}" if rest >= _LEAST_KIND else name


_LEAST_KIND = 4
