"""Changed shardings and what they cost as a terminal page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hloopt.cost_models import describe
from hloopt.diagnostics import counted
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import head, human_bytes, human_change, middle, page_width
from hloopt.reports.sharding.what_if import Amount, WhatIf

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.reports.console.table import ReportTable
    from hloopt.sharding.changes import Change

_MOST_CHANGES = 12
_LEAST_NAME = 12


def render_what_if(report: WhatIf, console: Console) -> None:
    """Print the changes, and the figures before and after in one table."""
    from rich.text import Text

    width = page_width(console)
    title = Text.assemble(
        (report.module, "bold"), f" on {counted(report.partitions, 'partition')}, partitioned again"
    )
    console.print(title, width=width)
    for change in report.changes[:_MOST_CHANGES]:
        console.print(Text(f"  {_change(change, width - 2)}"), width=width)
    if len(report.changes) > _MOST_CHANGES:
        console.print(Text(f"  … and {len(report.changes) - _MOST_CHANGES:,} more", "dim"))
    console.print()
    console.print(_table(report), width=width)
    if report.before.kinds == report.after.kinds:
        print_footnote(console, "the partitioner makes the same collectives", width=width)
    times = f"times by {describe(report.cost_model)}"
    print_footnote(console, times, width=width)
    for note in report.notes:
        print_footnote(console, note, width=width)


def _change(change: Change, room: int) -> str:
    before = change.before or "no sharding"
    rest = f": {before} → {change.after}" if change.after else f": {before} dropped"
    return head(middle(f"%{change.name}", max(room - len(rest), _LEAST_NAME)) + rest, room)


def _table(report: WhatIf) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    table.add_column("")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", stays=True)
    for name, before, after, texts in _rows(report):
        change = human_change(before, after) if before else "new" if after else "-"
        table.add_row(name, *texts, change if before != after else "-")
    return table


def _rows(report: WhatIf) -> Iterator[tuple[str, float, float, tuple[str, str]]]:
    """Each with its name, both figures, and both as texts."""
    left, right = report.before, report.after
    total = left.total, right.total
    yield _counts("collectives", *total)
    for kind in report.kinds:
        amounts = left.kinds.get(kind, Amount()), right.kinds.get(kind, Amount())
        yield _counts(f"  {kind}", *amounts)
    yield _bytes("sent in a run", total[0].bytes, total[1].bytes)
    for kind in report.kinds:
        sent = [side.kinds.get(kind, Amount()).bytes for side in (left, right)]
        yield _bytes(f"  {kind}", *sent)
    yield _bytes("peak memory", left.peak, right.peak)
    for name, before, after in (
        ("exposed", left.exposed, right.exposed),
        ("one run", left.makespan, right.makespan),
    ):
        yield name, before, after, (report.unit.label(before), report.unit.label(after))


def _counts(name: str, *amounts: Amount) -> tuple[str, float, float, tuple[str, str]]:
    """Numbers in the text, and in a run where loops make more of them."""
    before, after = amounts
    left, right = (
        f"{a.count:,}" if a.runs == a.count else f"{a.count:,} ({a.runs:,} runs)" for a in amounts
    )
    return name, before.runs, after.runs, (left, right)


def _bytes(name: str, before: int, after: int) -> tuple[str, float, float, tuple[str, str]]:
    return name, before, after, (human_bytes(before), human_bytes(after))
