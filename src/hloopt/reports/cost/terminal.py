"""The cost report as a terminal page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hloopt.analysis.cost.runs import ONCE
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import (
    columns,
    head,
    human_bytes,
    human_count,
    human_ratio,
    human_seconds,
    middle,
    more_text,
    page_width,
    tail,
)
from hloopt.reports.cost.chart import intensity_chart
from hloopt.reports.cost.findings import CostGroup, CostReport, CostRow, grouped, source_notes_of
from hloopt.reports.look import BOUND
from hloopt.reports.sources import cut_source
from hloopt.reports.stage_notices import render_notices

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import Cell, ReportTable


def render_cost(
    report: CostReport,
    console: Console,
    *,
    by: str = "instruction",
    depth: int = 3,
    top: int = 10,
) -> None:
    """Print totals, where the time goes by flops per byte, and the `top` groups that take most.

    What bounds the time, and shares of it, only of a module that devices run as it is. Without a
    target there are no times: the groups are those that move most bytes.
    """
    from rich.text import Text

    width = page_width(console)
    place = f" on {report.target.title}" if report.target else ""
    title = Text.assemble("Cost of ", (report.module, "bold"), place)
    console.print(title, width=width)
    render_notices(report.notices, console, width)
    console.print(_summary(report), width=width)
    if report.rows and report.target is not None and not report.notices:
        console.print()
        console.print(intensity_chart(report, width))
    if report.rows:
        console.print()
        console.print(_table(report, by, depth, top), width=width)
    notes = source_notes_of(report) if by == "source" else []
    for note in report.assumptions + notes:
        print_footnote(console, note, width=width)


def _summary(report: CostReport) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    total = report.total
    table = ReportTable(heads=False)
    table.add_column("field", style="bold")
    table.add_column("figure", justify="right", stays=True)
    table.add_column("meaning", style="dim", wraps=True)
    table.add_row("flops", human_count(total.flops), "")
    if total.transcendentals:
        table.add_row("transcendentals", human_count(total.transcendentals), "not counted as flops")
    parts = f"read {human_bytes(total.bytes_read)}, written {human_bytes(total.bytes_written)}"
    table.add_row("bytes accessed", human_bytes(total.bytes_accessed), parts)
    if total.unfused_bytes != total.bytes_accessed:
        moved = max(total.bytes_accessed, 1)
        factor = f"{human_ratio(total.unfused_bytes / moved)} times as much, if nothing were fused"
        table.add_row("unfused", human_bytes(total.unfused_bytes), factor)
    ridge = "" if report.notices else _ridge(report)
    table.add_row("intensity", human_ratio(total.intensity), "flops per byte" + ridge)
    if report.target is not None:
        table.add_row("least time", human_seconds(report.seconds), _split(report))
    if report.measured is not None:
        seconds = report.measured_seconds
        table.add_row("measured", human_seconds(seconds), f"of what {report.measured.source} names")
    return table


def _ridge(report: CostReport) -> str:
    ridge = report.target.ridge() if report.target else None
    return f"; bf16 dots: compute bound above {human_ratio(ridge)}" if ridge else ""


def _split(report: CostReport) -> str:
    if not report.seconds or report.notices:
        return ""
    compute = report.compute_seconds / report.seconds
    return f"{compute:.0%} bound by compute, {1 - compute:.0%} by memory"


def _table(report: CostReport, by: str, depth: int, top: int) -> ReportTable:
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    groups = grouped(report, by, depth=depth)
    shown, hidden = groups[:top], groups[top:]
    heads = (*(_TIME_HEADS if report.target else ()), *_HEADS)
    table = ReportTable(gap=2)
    for name in heads:
        is_verdict = name in ("share", "bound")
        table.add_column(name, justify="right", shown=not (is_verdict and report.notices))
    table.add_column(by)
    rows = {row.name: row for row in report.rows} if by == "instruction" else {}
    for group in shown:
        row = rows.get(group.label)
        label: Cell = partial(_instruction, row) if row else partial(_label, group, by)
        cells = [
            Text(text, BOUND[text].style if text in BOUND else "")
            for text in _figures(group, report)
        ]
        table.add_row(*cells, label)
    if hidden:
        rest = zip(heads, _figures(_summed(hidden), report), strict=True)
        figures = ["" if name in ("bound", "runs") else text for name, text in rest]
        table.add_row(*figures, partial(more_text, len(hidden)), style="dim")
    return table


_TIME_HEADS = ("time", "share", "bound")
_HEADS = ("flops", "bytes", "runs")


def _summed(groups: list[CostGroup]) -> CostGroup:
    """The row that sums up what is not shown."""
    rest = CostGroup("")
    for group in groups:
        rest.seconds += group.seconds
        rest.flops += group.flops
        rest.bytes_accessed += group.bytes_accessed
    return rest


def _figures(group: CostGroup, report: CostReport) -> tuple[str, ...]:
    """The cells of a row, times only where there are any."""
    counts = human_count(group.flops), human_bytes(group.bytes_accessed), _runs(group)
    if report.target is None:
        return counts
    return (
        human_seconds(group.seconds),
        f"{group.seconds / report.seconds:.1%}" if report.seconds else "",
        "compute" if group.compute_seconds > group.seconds / 2 else "memory",
        *counts,
    )


def _runs(group: CostGroup) -> str:
    """`x24`, `≤x24` where some of a group run less often, `x?`; nothing for once."""
    if not group.runs.is_known:
        return "x?"
    if group.runs == ONCE:
        return ""
    return f"{'≤' if group.least_runs < group.runs.times else ''}x{group.runs.times:,}"


def _instruction(row: CostRow, room: int) -> Text:
    """Its name, where it is from, and the shape where there is room for a part of it."""
    from rich.text import Text

    text = Text(middle(f"%{row.name}", room))
    rest = room - columns(text.plain) - 1
    if rest >= _LEAST_SHAPE:
        text.append(f" {head(row.shape, rest)}")
    if row.op_name:
        text.append(f"\n{tail(row.op_name, room)}", style="dim")
    elif rest < _LEAST_SHAPE:
        text.append(f"\n{head(row.shape, room)}")
    return text


_LEAST_SHAPE = 8


def _label(group: CostGroup, by: str, room: int) -> str:
    count = f" ({group.instructions:,})"
    cut = {"scope": tail, "source": cut_source}.get(by, middle)
    name = f"%{group.label}" if by == "computation" else group.label
    return cut(name, room - len(count)) + count
