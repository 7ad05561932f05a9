"""The memory report as a terminal page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.memory.model import AllocationSummary, MemoryReport, PeakInstruction
from hloopt.memory.statistics import MemorySizes, MemoryStatistics
from hloopt.reports.memory_chart import memory_chart
from hloopt.reports.memory_groups import BufferGroup, grouped
from hloopt.reports.stage_notices import render_notices
from hloopt.reports.units import head, human_bytes, tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from hloopt.memory.places import PlacedBuffer

_WIDEST = 120  # columns: beyond, lines are hard to follow
KIND_STYLES = {
    **{"parameter": "cyan", "output": "green", "constant": "magenta", "temporary": "yellow"},
    **{"thread-local": "blue", "": "dim"},
}
_HEAD_NAMES = {"buffer": "from", "scope": "scope", "source": "source"}


def render_memory(
    report: MemoryReport,
    console: Console,
    *,
    by: str = "buffer",
    depth: int = 3,
    top: int = 10,
    allocations: int = 0,
    limit: int | None = None,
) -> None:
    """Print sizes, memory over the schedule and the `top` groups of buffers live at the peak.

    Of the allocations the largest are listed, `allocations` of them. `by` and `depth` say what a
    group is (see `memory_groups`); what is beyond `limit` bytes is red in the picture.
    """
    from rich.text import Text

    width = page_width(console)
    where = f" on {report.backend}, order: {report.order}"
    title = Text.assemble("Memory of ", (report.module, "bold"), where)
    console.print(title, width=width)
    render_notices(report.notices, console, width)
    console.print(_summary(report))
    if report.peak_instruction is not None:
        console.print(_peak_place(report.peak_instruction, width))
        console.print()
        console.print(memory_chart(report, width, KIND_STYLES["temporary"], limit))
        console.print()
        console.print(_live_table(report, width, top, by, depth))
    if allocations:
        console.print()
        console.print(_allocation_table(report, width, allocations))
    for note in report.assumptions:
        console.print(Text(f"* {note}", style="dim"), width=width)


def page_width(console: Console) -> int:
    """How wide lines may be."""
    return min(console.width, _WIDEST)


def _summary(report: MemoryReport) -> Table:
    from rich.text import Text

    table = plain_table(show_header=False)
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


def plain_table(*, show_header: bool = True) -> Table:
    """A table with a line below its heads only."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        show_header=show_header,
        title_justify="left",
    )


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


# -- buffers live at the peak ---------------------------------------------------------------------


def _live_table(report: MemoryReport, width: int, top: int, by: str, depth: int) -> Table:
    from rich.text import Text

    groups = grouped(report.live_at_peak, by, depth=depth)
    shown, hidden = groups[:top], groups[top:]
    table = plain_table()
    table.title = f"{len(report.live_at_peak):,} buffers live at the peak"
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("shape", no_wrap=True)
    table.add_column(_HEAD_NAMES[by], no_wrap=True)
    shapes = [shape_and_count(group) for group in shown]
    shape_width = min(max(map(len, shapes), default=0), (width - 36) // 2)
    label_width = width - 36 - shape_width
    for group, shape in zip(shown, shapes, strict=True):
        table.add_row(
            human_bytes(group.size),
            f"{group.size / report.peak:.1%}",
            Text(group.kind or "several", style=KIND_STYLES[group.kind]),
            Text(head(shape, shape_width)),
            Text(tail(group.label, label_width)),
        )
    if hidden:
        count = sum(group.count for group in hidden)
        size = sum(group.size for group in hidden)
        rest = Text(f"… and {count:,} more", style="dim")
        table.add_row(human_bytes(size), f"{size / report.peak:.1%}", "", rest, "", style="dim")
    return table


def shape_and_count(group: BufferGroup) -> str:
    """`64 x f32[8]`, `f32[8]` of one, `64 buffers` of several shapes."""
    if not group.shape:
        return f"{group.count:,} buffers"
    return f"{group.count:,} x {group.shape}" if group.count > 1 else group.shape


# -- largest buffers ------------------------------------------------------------------------------


def render_largest(
    report: MemoryReport, buffers: Sequence[PlacedBuffer], console: Console, count: int
) -> None:
    """Print the `count` largest buffers with their places and lifetimes."""
    from rich.text import Text

    width = page_width(console)
    table = plain_table()
    table.title = f"{len(buffers):,} buffers, the largest first"
    for name in ("size", "from", "to", "place"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("kind", "shape", "buffer"):
        table.add_column(name, no_wrap=True)
    shown = sorted(buffers, key=lambda b: (-b.size, b.live, b.allocation, b.offset))[:count]
    places = [f"{b.allocation}+{b.offset:#x}" if b.offset else str(b.allocation) for b in shown]
    room = width - 43 - max(map(len, places), default=0)
    shape_width = min(max((len(b.shape) for b in shown), default=0), room // 2)
    for buffer, place in zip(shown, places, strict=True):
        table.add_row(
            human_bytes(buffer.size),
            str(buffer.live[0]),
            str(buffer.live[1]),
            place,
            Text(buffer.kind, style=KIND_STYLES[buffer.kind]),
            Text(head(buffer.shape, shape_width)),
            Text(tail(f"%{buffer.name}", room - shape_width)),
        )
    console.print()
    console.print(table)
    console.print(
        Text(
            f"from, to: positions of {len(report.timeline):,}; place: allocation + offset",
            style="dim",
        )
    )


# -- allocations ----------------------------------------------------------------------------------


def _allocation_table(report: MemoryReport, width: int, count: int) -> Table:
    from rich.text import Text

    table = plain_table()
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
            Text(_facts(allocation), style=KIND_STYLES[allocation.kind]),
            Text(tail(f"%{allocation.holds}" if allocation.holds else "", width - 60)),
        )
    return table


def _facts(allocation: AllocationSummary) -> str:
    text = str(allocation.kind)
    if allocation.parameter is not None:
        text += f" {allocation.parameter.number}"
        text += ", aliased" if allocation.is_aliased else ", output" * allocation.is_live_out
    return f"{text}, S({allocation.color})" if allocation.color else text
