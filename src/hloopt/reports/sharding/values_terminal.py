"""Layouts of values over devices as a terminal page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted, printable
from hloopt.ir.attributes.values.shards import Shards
from hloopt.ir.shapes.shape import format_shape
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import head, human_bytes, middle, more_text, page_width, tail
from hloopt.reports.sharding.values import CutValue, ValuesReport
from hloopt.sharding.layouts import picture

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

_MOST_ROWS = 8
_MOST_PICTURES = 6


def render_values(report: ValuesReport, console: Console, *, top: int) -> None:
    """Print the `top` parameters, results and values, what is replicated, and pictures."""
    from rich.text import Text

    width = page_width(console)
    title = Text.assemble((report.module, "bold"), f" on {counted(report.devices, 'device')}")
    if report.mesh:
        title.append(printable(f", mesh {report.mesh}"))
    console.print(title, width=width)
    groups = {
        "parameters": report.parameters,
        "results": report.results,
        "largest values": report.values,
    }
    for name, values in groups.items():
        if values:
            total = sum(value.layout.bytes_per_device for value in values)
            on_each = "" if values is report.values else f": {human_bytes(total)} on each device"
            console.print()
            console.print(_table(f"{name}{on_each}", values, top), width=width)
    if report.redundant:
        console.print()
        console.print(_redundant(report, top), width=width)
    shown = [value for values in groups.values() for value in _largest(values, top)]
    for line in _pictures(shown, width):
        console.print(line, width=width)
    for note in report.notes:
        print_footnote(console, note, width=width)


def _largest(values: Sequence[CutValue], top: int) -> list[CutValue]:
    return sorted(values, key=lambda value: -value.layout.bytes_per_device)[:top]


def _table(title: str, values: Sequence[CutValue], top: int) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(title, gap=2)
    table.add_column("on device", justify="right")
    table.add_column("copies", justify="right")
    table.add_column("value, part of a device, sharding")
    for value in _largest(values, top):
        table.add_row(*_figures(value), partial(_what, value))
    if len(values) > top:
        table.add_row("", "", partial(more_text, len(values) - top), style="dim")
    return table


def _figures(value: CutValue) -> tuple[str, str]:
    layout = value.layout
    if layout.shards is None:
        return "?", "?"
    return human_bytes(layout.bytes_per_device), f"x{layout.copies:,}" if layout.copies > 1 else ""


def _what(value: CutValue, room: int) -> Text:
    from rich.text import Text

    layout = value.layout
    shape = format_shape(layout.shape, layout=False)
    part = format_shape(layout.part, layout=False)
    name = middle(value.name, max(room - len(shape) - 1, 12))
    text = Text.assemble((name, "bold"), f" {shape}")
    text.truncate(room)
    if layout.shards is not None and part != shape:
        text.append(f"\n  {head(f'{part} on each device', room - 2)}")
    text.append(f"\n  {head(layout.sharding, room - 2)}", "cyan")
    origin = value.origin or value.source
    if origin:
        text.append(f"\n  {tail(origin, room - 2)}", "dim")
    return text


def _redundant(report: ValuesReport, top: int) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    found = report.redundant
    table = ReportTable("copies that cost most: bytes that a device would not need", gap=2)
    table.add_column("redundant", justify="right")
    table.add_column("copies", justify="right")
    table.add_column("value")
    for value in found[:top]:
        layout = value.layout
        shape = format_shape(layout.shape, layout=False)
        cells = human_bytes(layout.redundant_bytes), f"x{layout.copies:,}"
        table.add_row(*cells, partial(_named, value, shape))
    if len(found) > top:
        table.add_row("", "", partial(more_text, len(found) - top), style="dim")
    return table


def _named(value: CutValue, shape: str, room: int) -> str:
    rest = f" {shape} ({value.role})"
    return head(f"{middle(value.name, max(room - len(rest), 12))}{rest}", room)


# -- pictures -------------------------------------------------------------------------------------


def _pictures(values: Sequence[CutValue], width: int) -> Iterator[Text]:
    """The first different layouts that cut something, each with the devices of its parts."""
    from rich.text import Text

    layouts: dict[tuple[str, Shards], list[CutValue]] = {}
    for value in values:
        shards = value.layout.shards
        if shards is not None and not shards.is_whole:
            layouts.setdefault((value.layout.sharding, shards), []).append(value)
    for (sharding, shards), members in list(layouts.items())[:_MOST_PICTURES]:
        yield Text("")
        yield Text(head(f"{sharding}: devices of each part", width), "cyan")
        yield Text(head(f"  of {counted(len(members), 'value')}, as {members[0].name}", width))
        yield from map(Text, _drawing(shards, width))
    if len(layouts) > _MOST_PICTURES:
        yield Text("")
        yield Text(f"… and {counted(len(layouts) - _MOST_PICTURES, 'more layout')}", "dim")


def _drawing(shards: Shards, width: int) -> Iterator[str]:
    cut = [str(dimension) for dimension, count in enumerate(shards.counts) if count > 1]
    cells = picture(shards)
    room = max(len(cell) for row in cells for cell in row)
    line = (room + 3) * len(cells[0]) + 3
    if line > width or len(cells) > _MOST_ROWS * 4:
        yield head(f"  too many parts to draw: {len(cells)} x {len(cells[0])}", width)
        return
    if len(cut) > 1:
        yield head(f"  dimension {cut[0]} down, {', '.join(cut[1:])} across", width)
    elif cut:
        yield head(f"  dimension {cut[0]} down", width)
    rule = "─" * (room + 2)
    yield f"  ┌{'┬'.join(rule for _ in cells[0])}┐"
    for number, row in enumerate(cells):
        if number:
            yield f"  ├{'┼'.join(rule for _ in row)}┤"
        yield f"  │{'│'.join(f' {cell:^{room}} ' for cell in row)}│"
    yield f"  └{'┴'.join(rule for _ in cells[0])}┘"
