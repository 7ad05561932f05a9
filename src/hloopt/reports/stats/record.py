"""Inventories as data for JSON, and the rows in which two of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from hloopt.reports.stats.inventory import COLLECTIVE_KEYS, PRODUCT_KEYS, Inventory, Row

TABLES: dict[str, tuple[str, ...]] = {
    "collectives": COLLECTIVE_KEYS,
    "custom_calls": ("target",),
    "products": PRODUCT_KEYS,
    "opcodes": ("opcode",),
    "flops": ("type",),
}
"""The tables of rows that are alike, with the names of what is alike."""


def inventory_to_json(inventory: Inventory) -> dict[str, Any]:
    """An inventory as plain data."""
    tables = {
        name: [_row_to_json(row, keys) for row in getattr(inventory, name)]
        for name, keys in TABLES.items()
    }
    return {
        "module": inventory.module,
        **tables,
        "loops": [asdict(loop) for loop in inventory.loops],
        "parameters": [asdict(row) for row in inventory.parameters],
        "results": [asdict(row) for row in inventory.results],
        "notices": list(inventory.notices),
    }


def _row_to_json(row: Row, keys: Sequence[str]) -> dict[str, Any]:
    return {
        **dict(zip(keys, row.key, strict=True)),
        "count": row.count,
        "runs": row.runs,
        "runs_are_known": row.is_known,
        **row.amounts,
        "sources": list(row.sources),
        **({"origins": _origins_to_json(row)} if row.origins else {}),
        "instructions": [instruction.name for instruction in row.instructions],
    }


def _origins_to_json(row: Row) -> dict[str, Any]:
    return {name: origin.to_json() for name, origin in row.origins.items()}


class Change(NamedTuple):
    """A row that two inventories have in other numbers."""

    table: str
    key: tuple[Any, ...]
    figure: str
    """`count`, `runs`, or an amount."""
    before: int
    after: int


def changes(before: Inventory, after: Inventory) -> Iterator[Change]:
    """The figures in which two inventories differ, by tables; 0 where a row is missing."""
    for table in TABLES:
        old: dict[Any, Row] = {row.key: row for row in getattr(before, table)}
        new: dict[Any, Row] = {row.key: row for row in getattr(after, table)}
        for key in dict.fromkeys((*old, *new)):
            left, right = _figures(old.get(key)), _figures(new.get(key))
            for figure in dict.fromkeys((*left, *right)):
                numbers = left.get(figure, 0), right.get(figure, 0)
                if numbers[0] != numbers[1]:
                    yield Change(table, key, figure, *numbers)


def _figures(row: Row | None) -> dict[str, int]:
    return {} if row is None else {"count": row.count, "runs": row.runs, **row.amounts}


def changes_to_json(found: Sequence[Change]) -> list[dict[str, Any]]:
    """Changes as plain data."""
    return [
        {
            "table": each.table,
            **dict(zip(TABLES[each.table], each.key, strict=True)),
            "figure": each.figure,
            "before": each.before,
            "after": each.after,
        }
        for each in found
    ]
