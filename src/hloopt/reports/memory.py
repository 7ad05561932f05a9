"""The memory report: as a terminal page, and as a comparison of two."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from hloopt.memory.model import AllocationSummary, LiveBuffer, MemoryReport, PeakInstruction
from hloopt.memory.statistics import MemorySizes, MemoryStatistics
from hloopt.patterns import pattern
from hloopt.reports.units import head, tail

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_CHART_ROWS = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LABEL_WIDTH = 10
_WIDEST = 120  # columns: beyond, lines are hard to follow
_LAYOUT = pattern(r"\{[^{}]*\}")
_NUMBER = pattern(r"\d+")
_KIND_STYLES = {
    **{"parameter": "cyan", "output": "green", "constant": "magenta", "temporary": "yellow"},
    "thread-local": "blue",
}


def human_bytes(size: int, *, signed: bool = False) -> str:
    """A size as people read it: `832 B`, `1.5 KiB`, `79.2 GiB`; with its sign if `signed`."""
    sign = "-" if size < 0 else "+" if signed and size > 0 else ""
    amount = float(abs(size))
    if amount < 1024:
        return f"{sign}{abs(size)} B"
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1024
        if amount < 1023.95:  # 1024.0 after rounding reads better in the next unit
            return f"{sign}{amount:.1f} {unit}"
    return f"{sign}{amount / 1024:,.1f} TiB"


# -- terminal -----------------------------------------------------------------------------------


def render_memory(
    report: MemoryReport, console: Console, *, top: int = 10, allocations: int = 0
) -> None:
    """Print sizes, memory over the schedule and the `top` groups of buffers live at the peak.

    Of the allocations the largest are listed, `allocations` of them.
    """
    from rich.text import Text

    width = min(console.width, _WIDEST)
    where = f" on {report.backend}, order: {report.order}"
    title = Text.assemble("Memory of ", (report.module, "bold"), where)
    console.print(title, width=width)
    console.print(_summary(report))
    if report.peak_instruction is not None:
        console.print(_peak_place(report.peak_instruction, width))
        console.print()
        console.print(_chart(report, width))
        console.print()
        console.print(_live_table(report, width, top))
    if allocations:
        console.print()
        console.print(_allocation_table(report, width, allocations))
    for note in report.assumptions:
        console.print(Text(f"* {note}", style="dim"), width=width)


def render_fit(report: MemoryReport, console: Console, limit: int) -> None:
    """Print whether the program fits into `limit` bytes, the size of its code aside."""
    from rich.text import Text

    needed = report.statistics.total
    if needed <= limit:
        words, style = "fits: it needs", "green"
    else:
        over = human_bytes(needed - limit)
        words, style = f"RESOURCE_EXHAUSTED, {over} too much: it needs", "red"
    text = f"{words} {human_bytes(needed)} of {human_bytes(limit)}"
    console.print(Text(text, style=style), width=min(console.width, _WIDEST))


def _summary(report: MemoryReport) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=False)
    table.add_column("field", style="bold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("meaning", style="dim")
    statistics = report.statistics
    device = statistics.device
    table.add_row("arguments", human_bytes(device.argument), "")
    table.add_row("outputs", human_bytes(device.output), "with arguments that are outputs too")
    table.add_row("aliased", human_bytes(device.alias), "donated arguments that outputs reuse")
    table.add_row("temporaries", human_bytes(device.temp), "as they are packed")
    table.add_row("total", human_bytes(statistics.total), "arguments + outputs - aliased + temp.")
    table.add_row("constants", human_bytes(statistics.constant), "not in the total")
    table.add_row("fragmentation", *_fragmentation(statistics))
    table.add_row(
        "peak", Text(human_bytes(report.peak), style="bold"), "the most in use at one time"
    )
    for name, size in _host_rows(statistics.host):
        table.add_row(f"host {name}", human_bytes(size), "in host memory, not in the total")
    return table


def _fragmentation(statistics: MemoryStatistics) -> tuple[str, str]:
    share = statistics.fragmentation / statistics.heap if statistics.heap else 0
    return human_bytes(statistics.fragmentation), f"{share:.1%} of the heap is never in use"


def _host_rows(host: MemorySizes) -> list[tuple[str, int]]:
    rows = [
        ("arguments", host.argument),
        ("outputs", host.output),
        ("aliased", host.alias),
        ("temporaries", host.temp),
    ]
    return [row for row in rows if row[1]]


def _peak_place(peak: PeakInstruction, width: int) -> Text:
    from rich.text import Text

    place = Text.assemble(
        "peak at ", (f"%{peak.name}", "bold"), f" ({peak.opcode}) in %{peak.computation}"
    )
    if peak.op_name:
        place.append(f"\n        {tail(peak.op_name, width - 8)}", style="dim")
    return place


def _chart(report: MemoryReport, width: int) -> Text:
    """Memory over the positions of the order, a column for the most in its share of them."""
    from rich.text import Text

    columns = _columns(report.timeline, width - _LABEL_WIDTH - 2)
    text = Text(no_wrap=True, overflow="crop")
    for row in range(_CHART_ROWS - 1, -1, -1):
        top = (row + 1) / _CHART_ROWS * report.peak
        label = human_bytes(round(top)) if row % 2 else ""
        text.append(f"{label:>{_LABEL_WIDTH}} ┤" if label else " " * _LABEL_WIDTH + " │")
        cells = [_cell(size, row, report) for size in columns]
        for style, run in groupby(cells, key=itemgetter(1)):
            text.append("".join(map(itemgetter(0), run)), style)
        text.append("\n")
    peak = report.peak_instruction
    assert peak is not None
    at = peak.position * len(columns) // len(report.timeline)
    text.append(f"{'0 B':>{_LABEL_WIDTH}} └{'─' * at}▲{'─' * (len(columns) - at - 1)}\n")
    text.append(f"{'':{_LABEL_WIDTH + 2}}position {peak.position:,} of {len(report.timeline):,}")
    text.append("   ░ set aside throughout  ")
    text.append("█", style=_KIND_STYLES["temporary"])
    text.append(" temporaries")
    return text


def _columns(timeline: list[int], width: int) -> list[int]:
    """The timeline in at most `width` columns, each the largest of its positions."""
    count = len(timeline)
    width = max(1, min(width, count))
    return [max(timeline[i * count // width : (i + 1) * count // width]) for i in range(width)]


def _cell(size: int, row: int, report: MemoryReport) -> tuple[str, str]:
    """One character of the chart, and its style."""
    scale = 8 * _CHART_ROWS / report.peak
    eighths = min(8, max(0, round(size * scale) - 8 * row))
    if report.throughout * scale >= 8 * row + 4 and eighths:
        return "░", "dim"
    return _EIGHTHS[eighths], _KIND_STYLES["temporary"]


# -- buffers live at the peak ---------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """Buffers alike but for the numbers in their origins."""

    kind: str
    shape: str
    origin: str
    count: int
    size: int


def _groups(buffers: list[LiveBuffer]) -> list[_Group]:
    """Buffers of one kind and shape whose origins differ in numbers only; largest sum first."""
    found: dict[tuple[str, str, str], _Group] = {}
    for buffer in buffers:
        shape = _LAYOUT.sub("", buffer.shape)
        origin = buffer.op_name or f"%{buffer.name}"
        without_numbers = _NUMBER.sub("*", origin)
        key = (buffer.kind, shape, without_numbers)
        group = found.get(key)
        if group is None:
            found[key] = _Group(buffer.kind, shape, origin, 1, buffer.size)
            continue
        group.count += 1
        group.size += buffer.size
        if group.origin != origin:
            group.origin = without_numbers
    return sorted(found.values(), key=lambda group: -group.size)


def _live_table(report: MemoryReport, width: int, top: int) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    groups = _groups(report.live_at_peak)
    shown, hidden = groups[:top], groups[top:]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, title_justify="left")
    table.title = f"{len(report.live_at_peak):,} buffers live at the peak"
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("shape", no_wrap=True)
    table.add_column("from", no_wrap=True)
    shapes = [f"{g.count:,} x {g.shape}" if g.count > 1 else g.shape for g in shown]
    shape_width = min(max(map(len, shapes), default=0), (width - 36) // 2)
    from_width = width - 36 - shape_width
    for group, shape in zip(shown, shapes, strict=True):
        table.add_row(
            human_bytes(group.size),
            f"{group.size / report.peak:.1%}",
            Text(group.kind, style=_KIND_STYLES[group.kind]),
            Text(head(shape, shape_width)),
            Text(tail(group.origin, from_width)),
        )
    if hidden:
        count = sum(group.count for group in hidden)
        size = sum(group.size for group in hidden)
        rest = Text(f"… and {count:,} more", style="dim")
        table.add_row(human_bytes(size), f"{size / report.peak:.1%}", "", rest, "", style="dim")
    return table


# -- allocations ----------------------------------------------------------------------------------


def _allocation_table(report: MemoryReport, width: int, count: int) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, title_justify="left")
    table.title = f"{len(report.allocations):,} allocations, the largest first"
    for name in ("index", "size", "values"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("kind", "holds"):
        table.add_column(name, no_wrap=True)
    for allocation in sorted(report.allocations, key=lambda a: (-a.size, a.index))[:count]:
        table.add_row(
            str(allocation.index),
            human_bytes(allocation.size),
            f"{allocation.values:,}",
            Text(_facts(allocation), style=_KIND_STYLES[allocation.kind]),
            Text(tail(f"%{allocation.holds}" if allocation.holds else "", width - 60)),
        )
    return table


def _facts(allocation: AllocationSummary) -> str:
    text = str(allocation.kind)
    if allocation.parameter is not None:
        text += f" {allocation.parameter.number}"
        text += ", aliased" if allocation.is_aliased else ", output" * allocation.is_live_out
    return f"{text}, S({allocation.color})" if allocation.color else text


# -- comparison -----------------------------------------------------------------------------------


def memory_delta(before: MemoryReport, after: MemoryReport) -> Table:
    """A table of each size before and after a change. Rows that are 0 twice are left out."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("memory", style="bold")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    for (name, old), (_, new) in zip(_delta_rows(before), _delta_rows(after), strict=True):
        if old or new:
            is_neutral = old == new or name == "aliased"
            style = "" if is_neutral else "green" if new < old else "red"
            table.add_row(
                name, human_bytes(old), human_bytes(new), Text(_change(old, new), style=style)
            )
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
        ("peak", report.peak),
        ("host", host.argument + host.output - host.alias + host.temp),
    ]


def _change(old: int, new: int) -> str:
    if old == new:
        return "="
    change = human_bytes(new - old, signed=True)
    return f"{change} ({(new - old) / old:+.1%})" if old else change
