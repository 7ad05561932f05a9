"""Inventories as a terminal page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from rich.console import Console
from rich.text import Text

from hloopt.diagnostics import counted
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.table import ReportTable
from hloopt.reports.console.units import (
    human_bytes,
    human_change,
    human_count,
    middle,
    more_text,
    page_width,
    tail,
)
from hloopt.reports.stage_notices import render_notices
from hloopt.reports.stats.inventory import ArrayRow, Inventory, Row
from hloopt.reports.stats.record import TABLES, Change

_AMOUNTS: dict[str, Callable[[int], str]] = {
    "payload": human_bytes,
    "wire": human_bytes,
    "flops": human_count,
}
_TITLES = {
    "collectives": "Collectives",
    "custom_calls": "Custom calls",
    "products": "Products and convolutions",
    "flops": "Flops by element type",
    "opcodes": "Opcodes",
}
_WIDE = 100
"""Columns of a page on which there is room for lines of the program beside sizes."""
_NAME_WIDTH = 30
_ROOM_FOR_MORE = 60
_SHORT = {"group_size": "size", "types": "type"}


def render_inventory(inventory: Inventory, console: Console, *, top: int) -> None:
    """Print the tables of an inventory, at most `top` rows of each."""
    width = page_width(console)
    console.print(Text.assemble("Inventory of ", (inventory.module, "bold")), width=width)
    render_notices(inventory.notices, console, width)
    for name, title in _TITLES.items():
        rows: list[Row] = getattr(inventory, name)
        if rows:
            _print_rows(f"{title}: {sum(row.count for row in rows):,}", name, rows, console, top)
    if inventory.loops:
        _print_loops(inventory, console, top)
    for title, arrays in (("Parameters", inventory.parameters), ("Results", inventory.results)):
        if arrays:
            _print_arrays(title, arrays, console, top)
    if not all(row.is_known for row in inventory.opcodes):
        note = "runs with ≥ are in loops of unknown trip counts, which are taken to run once"
        print_footnote(console, note, width=width)


def _print_rows(title: str, name: str, rows: Sequence[Row], console: Console, top: int) -> None:
    table = ReportTable(gap=2)
    amounts = list(dict.fromkeys(amount for row in rows for amount in row.amounts))
    for number, key in enumerate(TABLES[name]):
        is_number = isinstance(rows[0].key[number], int)
        table.add_column(
            _SHORT.get(key, key),
            justify="right" if is_number else "left",
            stays=True,
            cut=middle,
            shown=any(row.key[number] != "" for row in rows),
        )
    for figure in ("count", "runs", *amounts):
        table.add_column(figure, justify="right", stays=True)
    has_room = len(amounts) < 2 or console.width >= _WIDE
    has_origins = any(row.origins for row in rows)
    has_sources = has_room and not has_origins and any(row.sources for row in rows)
    table.add_column("source", cut=tail, shown=has_sources)
    for row in rows[:top]:
        table.add_row(
            *map(str, row.key),
            f"{row.count:,}",
            f"{'' if row.is_known else '≥ '}{row.runs:,}",
            *(_AMOUNTS[amount](row.amounts[amount]) for amount in amounts),
            partial(_source, list(row.sources)),
        )
        if has_origins:
            _add_origins(table, row, top)
    _print(title, table, len(rows) - top, console)


def _add_origins(table: ReportTable, row: Row, top: int) -> None:
    """Below a row the origins of its collectives, those that read alike once."""
    from hloopt.sharding.origins import NOT_FOUND

    names = [each.name for each in row.instructions]
    counts = Counter(
        row.origins[name].text(_short) if name in row.origins else NOT_FOUND for name in names
    )
    for text, count in counts.most_common(top):
        times = f" (x{count:,})" if count > 1 else ""
        table.add_line(Text(f"  made by {text}{times}", "dim"))
    if len(counts) > top:
        table.add_line(Text(f"  {more_text(len(counts) - top, _ROOM_FOR_MORE)}", "dim"))


def _short(name: str) -> str:
    return middle(name, _NAME_WIDTH)


def _source(sources: Sequence[str], width: int) -> str:
    """The first line, and how many more there are."""
    if not sources:
        return ""
    more = f" +{len(sources) - 1}" if len(sources) > 1 else ""
    return tail(sources[0], width - len(more)) + more


def _print_loops(inventory: Inventory, console: Console, top: int) -> None:
    table = ReportTable(gap=2)
    table.add_column("loop", cut=middle)
    for title in ("depth", "trips", "state"):
        table.add_column(title, justify="right", stays=True)
    table.add_column("from")
    table.add_column("collectives of a trip")
    for loop in inventory.loops[:top]:
        trips = "?" if loop.trips is None else f"{loop.trips:,}"
        collectives = ", ".join(f"{count} {opcode}" for opcode, count in loop.collectives.items())
        table.add_row(
            *(f"%{loop.name}", str(loop.depth), trips, human_bytes(loop.state_bytes)),
            *(loop.source, collectives),
        )
    count = len(inventory.loops)
    _print(f"Loops: {count:,}", table, count - top, console)


def _print_arrays(title: str, arrays: Sequence[ArrayRow], console: Console, top: int) -> None:
    table = ReportTable(gap=2)
    table.add_column("number", justify="right")
    table.add_column("name", cut=tail)
    table.add_column("bytes", justify="right", stays=True)
    table.add_column("shape", cut=middle)
    table.add_column("sharding", cut=middle, shown=any(row.sharding for row in arrays))
    for row in sorted(arrays, key=lambda row: -row.bytes)[:top]:
        size = human_bytes(row.bytes)
        table.add_row(str(row.number), row.name, size, row.shape, row.sharding)
    total = human_bytes(sum(row.bytes for row in arrays))
    _print(f"{title}: {len(arrays):,}, {total}", table, len(arrays) - top, console)


def _print(title: str, table: ReportTable, more: int, console: Console) -> None:
    width = page_width(console)
    console.print()
    console.print(Text(title, "bold"))
    console.print(table, width=width)
    if more > 0:
        console.print(Text(more_text(more, width), "dim"))


def render_changes(found: Sequence[Change], console: Console) -> None:
    """Print a row for each figure that differs."""
    table = ReportTable(gap=2)
    for title in ("table", "row", "figure"):
        table.add_column(title, cut=middle)
    for title in ("before", "after", "change"):
        table.add_column(title, justify="right", stays=True)
    for each in found:
        text = _AMOUNTS.get(each.figure, "{:,}".format)
        change = human_change(each.before, each.after) if each.before else "new"
        row = " ".join(str(part) for part in each.key if part != "")
        table.add_row(
            *(each.table, row, each.figure, text(each.before), text(each.after)),
            change if each.after else "gone",
        )
    if found:
        console.print(table, width=page_width(console))
    console.print(Text(f"{counted(len(found), 'figure')} changed", "bold"))
