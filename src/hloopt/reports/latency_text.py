"""The report of times as a terminal page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.analysis.cost.runs import ONCE
from hloopt.analysis.latency import Origin
from hloopt.cost_models import describe
from hloopt.reports.latency import LatencyReport, OriginTotal, TimedRow, by_origin
from hloopt.reports.stage_notices import render_notices
from hloopt.reports.units import head, human_seconds, middle, more_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDEST = 120  # columns: beyond, lines are hard to follow
_MEGA = 1e6


def render_latency(report: LatencyReport, console: Console, *, top: int = 10) -> None:
    """Print what each source of times says, then the `top` instructions and operations."""
    from rich.text import Text

    width = min(console.width, _WIDEST)
    title = Text.assemble("Times of ", (report.module, "bold"), f" by {describe(report.model)}")
    console.print(title, width=width)
    render_notices(report.notices, console, width)
    for what, rows in (("instruction", report.instructions), ("operation", report.operations)):
        if rows:
            console.print()
            console.print(_origins(f"{what}s", rows, width), width=width)
            console.print()
            console.print(_rows(what, rows, top, width), width=width)
    if report.notes:
        console.print()
    for note in report.notes:
        console.print(Text(f"* {note}", style="dim"), width=width)


def _origins(what: str, rows: list[TimedRow], width: int) -> Table:
    table = _table()
    table.add_column("from", no_wrap=True)
    table.add_column(what, justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("mostly", no_wrap=True, style="dim")
    room = max(width - _ORIGIN_COLUMNS, _LEAST_ROOM)
    for total in by_origin(rows):
        style = "yellow" if total.origin is Origin.GUESS else ""
        seconds = human_seconds(total.microseconds / _MEGA)
        kinds = head(_kinds(total), room)
        table.add_row(total.origin.value, f"{total.count:,}", seconds, kinds, style=style)
    total_time = human_seconds(sum(row.microseconds for row in rows) / _MEGA)
    table.add_row("all", f"{len(rows):,}", total_time, "", style="bold")
    return table


_SHOWN_KINDS = 3


def _kinds(total: OriginTotal) -> str:
    """What most of them are: `64 custom-call, 2 copy`."""
    common = total.kinds.most_common(_SHOWN_KINDS)
    shown = ", ".join(f"{count:,} {kind}" for kind, count in common)
    return shown + (" …" if len(total.kinds) > _SHOWN_KINDS else "")


def _rows(what: str, rows: list[TimedRow], top: int, width: int) -> Table:
    table = _table()
    for name in ("time", "share", "runs"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("from", no_wrap=True)
    table.add_column(what, no_wrap=True, overflow="ellipsis")
    whole = sum(row.microseconds for row in rows)
    room = max(width - _OTHER_COLUMNS, _LEAST_ROOM)
    for row in rows[:top]:
        runs = "x?" if not row.runs.is_known else "" if row.runs == ONCE else f"x{row.runs.times:,}"
        share = f"{row.microseconds / whole:.1%}" if whole else ""
        name = middle(f"%{row.instruction.name}", room)
        label = f"{name} {head(row.kind, room - len(name) - 1)}" if room > len(name) + 4 else name
        seconds = human_seconds(row.microseconds / _MEGA)
        table.add_row(seconds, share, runs, row.time.origin.value, label)
    if len(rows) > top:
        rest = sum(row.microseconds for row in rows[top:])
        share = f"{rest / whole:.1%}" if whole else ""
        more = more_text(len(rows) - top, room)
        table.add_row(human_seconds(rest / _MEGA), share, "", "", more, style="dim")
    return table


_ORIGIN_COLUMNS = 44
_OTHER_COLUMNS = 46
"""How wide the other columns are at most."""
_LEAST_ROOM = 16


def _table() -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
