"""The report on hidden collectives as a terminal page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hloopt.cost_models import describe
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import human_bytes, page_width
from hloopt.reports.schedule.overlap import OverlapReport, OverlapRow, Pair, matched
from hloopt.reports.stage_notices import render_notices

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

_FIGURES = ("runs", "collectives", "bytes", "hidden", "waits", "state")


def render_overlap(before: OverlapReport, after: OverlapReport | None, console: Console) -> None:
    """Print the computations with collectives, and what they make of the module."""

    from hloopt.reports.console.table import ReportTable

    reports = [before] if after is None else [before, after]
    width = page_width(console)
    notices = dict.fromkeys(notice for report in reports for notice in report.notices)
    render_notices(notices, console, width)
    if not any(report.rows for report in reports):
        is_final = all(report.is_partitioned for report in reports)
        console.print(f"no collectives {'between devices' if is_final else 'yet'}")
        return
    table = ReportTable(rule=False, gap=2)
    table.add_column("one run of")
    for name in _FIGURES:
        table.add_column(name, justify="right", stays=name == "waits")
    pairs: list[Pair] = matched(before, after) if after else [(row, None) for row in before.rows]
    for pair in pairs:
        table.add_line(_name(pair))
        table.add_row("" if after is None else "  before", *_figures(pair[0], before))
        if after is not None:
            table.add_row("  after", *_figures(pair[1], after))
    console.print(table, width=width)
    console.print()
    console.print(_totals(reports), width=width)
    for note in _notes(reports):
        print_footnote(console, note, width=width)


def _name(pair: Pair) -> Text:
    """A computation, and the loop whose body it is."""
    from rich.text import Text

    row = next(row for row in pair if row is not None)
    loop = f", a trip of %{row.loop}" if row.loop else ""
    return Text.assemble((f"%{row.computation}", "bold"), (loop, "dim"))


def _figures(row: OverlapRow | None, report: OverlapReport) -> list[str]:
    """The figures of one run of a computation; dashes where there is none."""
    if row is None:
        return ["-"] * len(_FIGURES)
    return [
        f"{row.runs:,}" + ("" if row.runs_known else "?"),
        f"{row.collectives:,}",
        human_bytes(row.bytes),
        human_bytes(row.hidden_bytes),
        report.unit.text(row.exposed),
        human_bytes(row.state_bytes) if row.state_bytes else "-",
    ]


def _totals(reports: Sequence[OverlapReport]) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(heads=False)
    table.add_column("figure", style="bold")
    table.add_column("value")
    table.add_column("meaning", style="dim", wraps=True)
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
    """The model of the figures, and the assumptions behind them."""
    first = reports[0]
    yield f"times: {describe(first.cost_model)}; streams: {first.preset}"
    own = [(f"order: {report.order}", *report.notes) for report in reports]
    shared = [note for note in own[0] if all(note in notes for notes in own)]
    yield from shared
    for label, notes in zip(("before", "after"), own, strict=False):
        yield from (f"{label}: {note}" for note in notes if note not in shared)
