"""The report on hidden collectives as a terminal page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from hloopt.cost_models import describe
from hloopt.reports.memory_text import page_width, plain_table
from hloopt.reports.overlap import OverlapReport, OverlapRow, Pair, matched
from hloopt.reports.stage_notices import render_notices
from hloopt.reports.units import human_bytes, middle

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_LABEL = 12
_COLUMNS = (
    *(("runs", 6), ("collectives", 13), ("bytes", 11), ("hidden", 11), ("waits", 10)),
    ("state", 11),
)
"""Titles and widths of the figures, which stand right; all of them fit into 80 columns."""


def render_overlap(before: OverlapReport, after: OverlapReport | None, console: Console) -> None:
    """Print the computations with collectives, and what they make of the module."""
    from rich.text import Text

    reports = [before] if after is None else [before, after]
    width = page_width(console)
    notices = dict.fromkeys(notice for report in reports for notice in report.notices)
    render_notices(notices, console, width)
    if not any(report.rows for report in reports):
        console.print("no collectives between devices" if not notices else "no collectives yet")
        return
    console.print(_line("one run of", [title for title, _ in _COLUMNS]), style="bold")
    pairs: list[Pair] = matched(before, after) if after else [(row, None) for row in before.rows]
    for pair in pairs:
        console.print(_name(pair, width))
        console.print(_figures(pair[0], before, "" if after is None else "  before"))
        if after is not None:
            console.print(_figures(pair[1], after, "  after"))
    console.print()
    console.print(_totals(reports), width=width)
    for note in _notes(reports):
        console.print(Text(f"* {note}", style="dim"), width=width)


def _line(label: str, cells: Iterable[str]) -> Text:
    from rich.text import Text

    columns = zip(cells, _COLUMNS, strict=True)
    figures = "".join(f"{cell:>{width}}" for cell, (_, width) in columns)
    return Text(f"{label:<{_LABEL}}{figures}", no_wrap=True)


def _name(pair: Pair, width: int) -> Text:
    """A computation, and the loop whose body it is."""
    from rich.text import Text

    row = next(row for row in pair if row is not None)
    loop = f", a trip of %{middle(row.loop, width // 3)}" if row.loop else ""
    name = middle(f"%{row.computation}", width - len(loop))
    return Text.assemble((name, "bold"), (loop, "dim"), no_wrap=True)


def _figures(row: OverlapRow | None, report: OverlapReport, label: str) -> Text:
    """The line of one run of a computation; dashes where there is none."""
    if row is None:
        return _line(label, ["-"] * len(_COLUMNS))
    return _line(
        label,
        [
            f"{row.runs:,}" + ("" if row.runs_known else "?"),
            f"{row.collectives:,}",
            human_bytes(row.bytes),
            human_bytes(row.hidden_bytes),
            report.unit.text(row.exposed),
            human_bytes(row.state_bytes) if row.state_bytes else "-",
        ],
    )


def _totals(reports: Sequence[OverlapReport]) -> Table:
    table = plain_table(show_header=False)
    table.add_column("figure", style="bold", no_wrap=True)
    table.add_column("value", no_wrap=True)
    table.add_column("meaning", style="dim")
    waits = _change([report.unit.label(report.exposed) for report in reports])
    table.add_row("waits", waits, "for collectives, per run of the module")
    hidden = _change([human_bytes(report.hidden_bytes) for report in reports])
    moved = _change([human_bytes(report.bytes) for report in reports])
    table.add_row("hidden", hidden, f"of {moved}: off the critical path")
    if len(reports) > 1:
        more = reports[1].state_bytes - reports[0].state_bytes
        kept = human_bytes(more, signed=True) if more else "no more"
        table.add_row("state", kept, "kept by loops from trip to trip")
    return table


def _change(values: Sequence[str]) -> str:
    """`3`, or `3 → 4` where it changed."""
    return " → ".join(dict.fromkeys(values))


def _notes(reports: Sequence[OverlapReport]) -> Iterator[str]:
    """How the figures came about, and what they rest on."""
    first = reports[0]
    yield f"times: {describe(first.cost_model)}; streams: {first.preset}"
    own = [(f"order: {report.order}", *report.notes) for report in reports]
    shared = [note for note in own[0] if all(note in notes for notes in own)]
    yield from shared
    for label, notes in zip(("before", "after"), own, strict=False):
        yield from (f"{label}: {note}" for note in notes if note not in shared)
