"""The memory report as a terminal page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.memory.limit import needed_bytes
from hloopt.memory.model import AllocationSummary, MemoryReport, PeakInstruction
from hloopt.memory.statistics import MemorySizes
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import human_bytes, origin, page_width, tail
from hloopt.reports.look import MEMORY
from hloopt.reports.memory.chart import memory_chart
from hloopt.reports.memory.groups import BufferGroup, grouped, source_notes_of
from hloopt.reports.sources import cut_source
from hloopt.reports.stage_notices import render_notices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from hloopt.memory.places import PlacedBuffer
    from hloopt.reports.console.table import ReportTable

KIND_STYLES = {"": "dim", **{kind: look.style for kind, look in MEMORY.items()}}
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

    Shares of a whole that is in doubt are left out.

    Of the allocations the largest are listed, `allocations` of them. `by` and `depth` say what a
    group is (see `memory_groups`); what is beyond `limit` bytes is red in the picture.
    """
    from rich.text import Text

    width = page_width(console)
    where = f" on {report.backend}, order: {report.order}"
    space = f"{report.space} of " if len(report.spaces) > 1 else ""
    title = Text.assemble(f"Memory of {space}", (report.module, "bold"), where)
    console.print(title, width=width)
    render_notices(report.notices, console, width)
    console.print(_summary(report), width=width)
    if len(report.spaces) > 1:
        console.print()
        console.print(_space_table(report), width=width)
    if report.peak_instruction is not None:
        console.print(_peak_place(report.peak_instruction, width))
        console.print()
        console.print(memory_chart(report, width, KIND_STYLES["temporary"], limit))
        console.print()
        console.print(_live_table(report, top, by, depth), width=width)
    if allocations:
        console.print()
        console.print(_allocation_table(report, allocations), width=width)
    notes = source_notes_of(report.live_at_peak) if by == "source" else []
    for note in report.assumptions + notes:
        print_footnote(console, note, width=width)


def _summary(report: MemoryReport) -> ReportTable:
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    table = ReportTable(heads=False)
    table.add_column("field", style="bold")
    table.add_column("size", justify="right", stays=True)
    table.add_column("meaning", style="dim", wraps=True)
    statistics = report.statistics
    device = statistics.device
    table.add_row("arguments", human_bytes(device.argument), "")
    table.add_row("outputs", human_bytes(device.output), "with arguments that are outputs too")
    table.add_row("aliased", human_bytes(device.alias), "donated arguments that outputs reuse")
    table.add_row("temporaries", human_bytes(device.temp), "as they are packed")
    table.add_row("total", human_bytes(statistics.total), "arguments + outputs - aliased + temp.")
    table.add_row("constants", human_bytes(statistics.constant), "not in the total")
    wasted = statistics.fragmentation
    part = "" if report.doubts else f"{wasted / max(statistics.heap, 1):.1%} "
    table.add_row("fragmentation", human_bytes(wasted), f"{part}of the heap is never in use")
    table.add_row(
        "peak", Text(human_bytes(report.peak), style="bold"), "the most in use at one time"
    )
    for name, size in _host_rows(statistics.host):
        table.add_row(f"host {name}", human_bytes(size), "in host memory, not in the total")
    return table


def _host_rows(host: MemorySizes) -> list[tuple[str, int]]:
    rows = [
        ("arguments", host.argument),
        ("outputs", host.output),
        ("aliased", host.alias),
        ("temporaries", host.temp),
    ]
    return [row for row in rows if row[1]]


def _space_table(report: MemoryReport) -> ReportTable:
    """The bytes that each memory space holds, that move to and from it, and that are read there."""
    from hloopt.reports.console.table import ReportTable

    table = ReportTable()
    table.add_column("memory space", style="bold")
    for name in ("needed", "peak", "moved in", "moved out", "read", "share"):
        table.add_column(name, justify="right", stays=name == "needed")
    for use in report.spaces:
        traffic = use.traffic
        row = ["", "", "", ""]
        if traffic is not None:
            row = [human_bytes(traffic.bytes_in), human_bytes(traffic.bytes_out)]
            row += [human_bytes(traffic.read), f"{traffic.read_share:.1%}"]
        needed, peak = needed_bytes(use.statistics), use.statistics.peak_memory
        number = f" S({use.number})" if use.number else ""
        table.add_row(f"{use.name}{number}", human_bytes(needed), human_bytes(peak), *row)
    return table


def _peak_place(peak: PeakInstruction, width: int) -> Text:
    from rich.text import Text

    place = Text.assemble(
        "peak at ", (f"%{peak.name}", "bold"), f" ({peak.opcode}) in %{peak.computation}"
    )
    if peak.op_name:
        place.append(f"\n        {tail(peak.op_name, width - 8)}", style="dim")
    if peak.source.stack is not None:
        place.append(f"\n        {tail(peak.source.label, width - 8)}", style="dim")
    return place


# -- buffers live at the peak ---------------------------------------------------------------------


def _live_table(report: MemoryReport, top: int, by: str, depth: int) -> ReportTable:
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    groups = grouped(report.live_at_peak, by, depth=depth)
    shown, hidden = groups[:top], groups[top:]
    table = ReportTable(f"{counted(len(report.live_at_peak), 'buffer')} live at the peak")
    table.add_column("size", justify="right")
    table.add_column("share", justify="right", shown=not report.doubts)
    table.add_column("kind")
    table.add_column("shape")
    table.add_column(_HEAD_NAMES[by], cut=cut_source if by == "source" else origin)
    for group in shown:
        table.add_row(
            human_bytes(group.size),
            f"{group.size / report.peak:.1%}",
            Text(group.kind or "several", style=KIND_STYLES[group.kind]),
            shape_and_count(group),
            group.label,
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
        return counted(group.count, "buffer")
    return f"{group.count:,} x {group.shape}" if group.count > 1 else group.shape


# -- largest buffers ------------------------------------------------------------------------------


def render_largest(
    report: MemoryReport, buffers: Sequence[PlacedBuffer], console: Console, count: int
) -> None:
    """Print the `count` largest buffers with their places and lifetimes."""
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    table = ReportTable(f"{counted(len(buffers), 'buffer')}, the largest first")
    for name in ("size", "from", "to", "place"):
        table.add_column(name, justify="right")
    table.add_column("kind")
    table.add_column("shape")
    table.add_column("buffer", cut=origin)
    shown = sorted(buffers, key=lambda b: (-b.size, b.live, b.allocation, b.offset))[:count]
    for buffer in shown:
        place = f"{buffer.allocation}+{buffer.offset:#x}" if buffer.offset else buffer.allocation
        table.add_row(
            human_bytes(buffer.size),
            str(buffer.live[0]),
            str(buffer.live[1]),
            str(place),
            Text(buffer.kind, style=KIND_STYLES[buffer.kind]),
            buffer.shape,
            f"%{buffer.name}",
        )
    console.print()
    console.print(table, width=page_width(console))
    console.print(
        Text(
            f"from, to: positions of {len(report.timeline):,}; place: allocation + offset",
            style="dim",
        )
    )


# -- allocations ----------------------------------------------------------------------------------


def _allocation_table(report: MemoryReport, count: int) -> ReportTable:
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    table = ReportTable(f"{counted(len(report.allocations), 'allocation')}, the largest first")
    for name in ("index", "size", "values"):
        table.add_column(name, justify="right", stays=name == "size")
    table.add_column("kind")
    table.add_column("holds", cut=origin)
    for allocation in sorted(report.allocations, key=lambda a: (-a.size, a.index))[:count]:
        table.add_row(
            str(allocation.index),
            human_bytes(allocation.size),
            f"{allocation.values:,}",
            Text(_facts(allocation), style=KIND_STYLES[allocation.kind]),
            f"%{allocation.holds}" if allocation.holds else "",
        )
    return table


def _facts(allocation: AllocationSummary) -> str:
    text = str(allocation.kind)
    if allocation.parameter is not None:
        text += f" {allocation.parameter.number}"
        text += ", aliased" if allocation.is_aliased else ", output" * allocation.is_live_out
    return f"{text}, S({allocation.color})" if allocation.color else text
