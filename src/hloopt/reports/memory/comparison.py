"""Two memory reports side by side: each size, and what entered and left the peak."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hloopt.analysis.stage import Stage
from hloopt.diagnostics import HloError, counted
from hloopt.ir.module import Module
from hloopt.memory.backends import backend_of, common_backend
from hloopt.memory.model import LiveBuffer, MemoryReport
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import human_bytes, human_change, origin, page_width
from hloopt.reports.memory.groups import alike_key, grouped
from hloopt.reports.memory.model import memory_report
from hloopt.reports.memory.record import buffer_to_json, statistics_to_json
from hloopt.reports.memory.terminal import KIND_STYLES, shape_and_count
from hloopt.reports.sources import StackTable
from hloopt.reports.stage_notices import why_not_compared

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.reports.console.table import ReportTable

AUTOMATIC = 10_000
"""Instructions up to which memory is compared unasked: that takes about a second."""

_SHOWN = 8  # rows of each list


@dataclass(frozen=True, slots=True)
class PeakChange:
    """Buffers that are alive at the peak of one module only."""

    entered: list[LiveBuffer]
    left: list[LiveBuffer]


Partners = Mapping[str, str | None]
"""Names of instructions before, each with the name of its partner after; None without one."""


def peak_change(
    before: MemoryReport, after: MemoryReport, partners: Partners | None = None
) -> PeakChange:
    """Compare the buffers alive at both peaks; those without a counterpart entered or left.

    Counterparts have equal sizes and instructions that are `partners`, or of one name if
    `partners` lacks it. Of the rest, buffers of one kind and shape are counterparts if their
    origins differ in numbers only, then if their op_names end alike. O(buffers).
    """
    left, entered = list(before.live_at_peak), list(after.live_at_peak)

    def old_key(buffer: LiveBuffer) -> Hashable:
        name, brace, index = buffer.name.partition("{")
        partner = name if partners is None else partners.get(name, name)
        return None if partner is None else (partner + brace + index, buffer.size)

    left, entered = _unmatched(left, entered, old_key, lambda new: (new.name, new.size))
    for key in (alike_key, _ending_key):
        left, entered = _unmatched(left, entered, key, key)
    return PeakChange(entered, left)


def _ending_key(buffer: LiveBuffer) -> Hashable:
    kind, shape, origin = alike_key(buffer)
    return kind, shape, origin.rpartition("/")[2]  # inlining puts more before it


def _unmatched(
    left: list[LiveBuffer],
    entered: list[LiveBuffer],
    left_key: Callable[[LiveBuffer], Hashable],
    entered_key: Callable[[LiveBuffer], Hashable],
) -> tuple[list[LiveBuffer], list[LiveBuffer]]:
    """Both lists without the pairs of buffers with equal keys."""
    waiting: dict[Hashable, list[int]] = {}
    for number, buffer in enumerate(left):
        waiting.setdefault(left_key(buffer), []).append(number)
    matched: set[int] = set()
    rest = []
    for buffer in entered:
        partners = waiting.get(entered_key(buffer))
        if partners:
            matched.add(partners.pop())
        else:
            rest.append(buffer)
    return [buffer for number, buffer in enumerate(left) if number not in matched], rest


def compare_memory(
    before: Module, after: Module, wanted: bool | None
) -> tuple[tuple[MemoryReport, MemoryReport] | None, str | None]:
    """The memory of two modules, or a sentence why there is none; neither where not `wanted`.

    None stands for modules of at most `AUTOMATIC` instructions. The memory of a program over all
    devices is not compared with that of one device. Near-linear in the modules.
    """
    if wanted is False:
        return None, None
    count = max(sum(1 for _ in module.instructions()) for module in (before, after))
    if wanted is None and count > AUTOMATIC:
        return None, (
            f"no memory report: {counted(count, 'instruction')}, more than {AUTOMATIC:,}; "
            "--memory makes it"
        )
    if reason := why_not_compared([Stage.of(module) for module in (before, after)]):
        return None, f"memory is not compared: {reason}; `hloopt memory` shows each"
    backend = common_backend((before, after))
    try:
        first = memory_report(before, backend=backend)
        second = first if after is before else memory_report(after, backend=backend)
    except HloError as error:
        return None, f"no memory report: {error.message}"
    for name, module, report in (("first", before, first), ("second", after, second)):
        if backend_of(module).name != backend.name:
            rules = f"XLA:{backend.name.upper()}"
            report.doubts.append(f"nothing in the {name} tells of {rules}, whose rules both are by")
    return (first, second), None


def render_memory_change(
    before: MemoryReport, after: MemoryReport, console: Console, partners: Partners | None = None
) -> None:
    """Print each size before and after, and what entered and left the peak."""
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    width = page_width(console)
    console.print(memory_delta(before, after), width=width)
    if doubts := _doubts(before, after):
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
    is_doubtful = bool(_doubts(before, after))
    for (name, old), (_, new) in zip(_delta_rows(before), _delta_rows(after), strict=True):
        if old or new:
            is_neutral = is_doubtful or old == new or name == "aliased"
            style = "" if is_neutral else "green" if new < old else "red"
            change = _change(old, new, in_percent=not is_doubtful)
            table.add_row(name, human_bytes(old), human_bytes(new), Text(change, style=style))
    return table


def _doubts(before: MemoryReport, after: MemoryReport) -> list[str]:
    """The reason why the change of memory is no gain or loss, as clauses; empty where it is."""
    return list(dict.fromkeys((*before.doubts, *after.doubts)))


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
    ]


def _change(old: int, new: int, *, in_percent: bool) -> str:
    if old == new:
        return "="
    change = human_bytes(new - old, signed=True)
    return f"{change} ({human_change(old, new)})" if old and in_percent else change


def memory_change_to_json(
    before: MemoryReport, after: MemoryReport, partners: Partners | None = None
) -> dict[str, Any]:
    """XLA's statistics of both, and the buffers that entered and left the peak, in bytes."""
    return {
        "before": statistics_to_json(before.statistics),
        "after": statistics_to_json(after.statistics),
        "doubts": _doubts(before, after),
        **peak_change_to_json(before, after, partners),
    }


def peak_change_to_json(
    before: MemoryReport, after: MemoryReport, partners: Partners | None = None
) -> dict[str, Any]:
    """The buffers that entered and left the peak, and the stacks they refer to."""
    change = peak_change(before, after, partners)
    stacks = StackTable()
    return {
        "entered_peak": [buffer_to_json(buffer, stacks) for buffer in change.entered],
        "left_peak": [buffer_to_json(buffer, stacks) for buffer in change.left],
        "stacks": stacks.stacks,
    }
