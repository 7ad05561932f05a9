"""The memory of two modules compared, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloopt.memory.limit import needed_bytes
from hloopt.memory.model import LiveBuffer, MemoryReport
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import human_bytes, human_change, origin, page_width
from hloopt.reports.memory.comparison import Partners, doubts_of, peak_change
from hloopt.reports.memory.groups import grouped
from hloopt.reports.memory.terminal import KIND_STYLES, shape_and_count

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.reports.console.table import ReportTable


_SHOWN = 8  # rows of each list


def render_memory_change(
    before: MemoryReport, after: MemoryReport, console: Console, partners: Partners | None = None
) -> None:
    """Print each size before and after, and what entered and left the peak."""
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    width = page_width(console)
    console.print(memory_delta(before, after), width=width)
    if doubts := doubts_of(before, after):
        note = f"sizes only, no verdict: {'; '.join(doubts)}"
        print_footnote(console, note, width=width)
    change = peak_change(before, after, partners)
    if not (change.entered or change.left):
        return
    console.print()
    table = ReportTable()
    table.add_column("peak")
    table.add_column("size", justify="right", stays=True)
    table.add_column("kind")
    table.add_column("shape")
    table.add_column("from", cut=origin)
    left, entered = ("", "") if doubts else ("green", "red")
    for row in (*_rows("left", change.left, left), *_rows("entered", change.entered, entered)):
        table.add_row(
            Text(row.what, style=row.style),
            row.size,
            Text(row.kind, style=KIND_STYLES[row.kind]),
            row.shape,
            row.label,
        )
    console.print(table, width=width)


@dataclass(frozen=True, slots=True)
class _Row:
    what: str
    style: str
    size: str
    kind: str
    shape: str
    label: str


def _rows(what: str, buffers: list[LiveBuffer], style: str) -> Iterator[_Row]:
    groups = grouped(buffers, "buffer")
    for group in groups[:_SHOWN]:
        shape = shape_and_count(group)
        yield _Row(what, style, human_bytes(group.size), group.kind, shape, group.label)
    hidden = groups[_SHOWN:]
    if hidden:
        count = f"and {sum(group.count for group in hidden):,} more"
        yield _Row(what, style, human_bytes(sum(group.size for group in hidden)), "", count, "")


def memory_delta(before: MemoryReport, after: MemoryReport) -> ReportTable:
    """A table of each size before and after a change. Rows that are 0 twice are left out.

    Where the reports have doubts, without percentages and colours.
    """
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    table = ReportTable()
    table.add_column("memory", style="bold")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right")
    is_doubtful = bool(doubts_of(before, after))
    old_rows, new_rows = dict(_delta_rows(before)), dict(_delta_rows(after))
    for name in dict.fromkeys((*old_rows, *new_rows)):
        old, new = old_rows.get(name, 0), new_rows.get(name, 0)
        if old or new:
            is_neutral = is_doubtful or old == new or name == "aliased"
            style = "" if is_neutral else "green" if new < old else "red"
            change = _change(old, new, in_percent=not is_doubtful)
            table.add_row(name, human_bytes(old), human_bytes(new), Text(change, style=style))
    return table


def _delta_rows(report: MemoryReport) -> list[tuple[str, int]]:
    statistics = report.statistics
    device, host = statistics.device, statistics.host
    return [
        ("arguments", device.argument),
        ("outputs", device.output),
        ("aliased", device.alias),
        ("temporaries", device.temp),
        ("total", statistics.total),
        ("constants", statistics.constant),
        ("fragmentation", statistics.fragmentation),
        ("peak", report.peak),
        ("host", host.argument + host.output - host.alias + host.temp),
        *_space_rows(report),
    ]


def _space_rows(report: MemoryReport) -> Iterator[tuple[str, int]]:
    """Of each memory space apart from main memory, what it holds and what moves."""
    for use in report.spaces:
        if use.number in report.apart:
            yield use.name, needed_bytes(use.statistics)
            if use.traffic is not None:
                yield f"to {use.name}", use.traffic.bytes_in
                yield f"from {use.name}", use.traffic.bytes_out


def _change(old: int, new: int, *, in_percent: bool) -> str:
    if old == new:
        return "="
    change = human_bytes(new - old, signed=True)
    return f"{change} ({human_change(old, new)})" if old and in_percent else change
