"""What programs compute, for people and for programs: statistics, tables, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.values import Array, Value, arrays_of, element_name, type_text

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod


class Statistics(NamedTuple):
    """Of one array; None where there is no such number: no elements, complex ones, all NaN."""

    minimum: float | None
    maximum: float | None
    mean: float | None
    nans: int


def statistics_of(array: Array) -> Statistics:
    """Minimum, maximum and mean of what is no NaN, and how many are. O(elements)."""
    if array.dtype.kind == "c":
        values = array.astype(np.complex128)
        nans = int(np.isnan(values).sum())
        return Statistics(None, None, None, nans)
    values = array.astype(np.float64)
    nans = int(np.isnan(values).sum())
    if nans:
        values = values[~np.isnan(values)]
    if not values.size:
        return Statistics(None, None, None, nans)
    with np.errstate(all="ignore"):
        return Statistics(float(values.min()), float(values.max()), float(values.mean()), nans)


class OutputRow(NamedTuple):
    """One output array, and the devices that have the same."""

    devices: list[int]
    leaf: int
    array: Array


def output_rows(results: Sequence[Value]) -> list[OutputRow]:
    """The outputs of all devices; equal ones share a row. O(elements)."""
    rows: dict[tuple[int, tuple[int, ...], bytes], OutputRow] = {}
    for device, value in enumerate(results):
        for leaf, array in enumerate(arrays_of(value)):
            key = (leaf, array.shape, array.tobytes())
            rows.setdefault(key, OutputRow([], leaf, array)).devices.append(device)
    return sorted(rows.values(), key=lambda row: (row.leaf, row.devices))


def render_outputs(results: Sequence[Value], console: Console, *, top: int) -> None:
    """A row for each output that differs between devices, at most `top`."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rows = output_rows(results)
    if not rows:
        console.print("no outputs")
        return
    heads = ["output", "devices", "type", "min", "max", "mean", "NaN"]
    cells = [_cells(row, len(results)) for row in rows[:top]]
    if len(results) == 1:
        del heads[1]
        for row_cells in cells:
            del row_cells[1]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for head in heads:
        is_type = head == "type"  # all the others are short
        justify: JustifyMethod = "left" if is_type or head == "devices" else "right"
        table.add_column(head, justify=justify, no_wrap=not is_type, overflow="fold")
    columns = zip(heads, *cells, strict=True)
    room = console.width - sum(max(map(len, column)) + _GAP for column in columns)
    has_values = room >= _LEAST_ROOM
    if has_values:
        table.add_column("values", no_wrap=True, style="dim")
    for row, row_cells in zip(rows, cells, strict=False):
        nans = Text(row_cells[-1], style="dim" if row_cells[-1] == "0" else "red")
        values = [_first_values(row.array, room)] if has_values else []
        table.add_row(*row_cells[:-1], nans, *values)
    console.print(table)
    if len(rows) > top:
        console.print(f"… and {len(rows) - top} more; --top shows them", style="dim")


_GAP = 2
"""Blanks between columns."""
_LEAST_ROOM = 10
"""How narrow a column of values may be."""


def _cells(row: OutputRow, device_count: int) -> list[str]:
    found = statistics_of(row.array)
    numbers = map(number_text, (found.minimum, found.maximum, found.mean))
    devices = _ranges(row.devices, device_count)
    return [str(row.leaf), devices, type_text(row.array), *numbers, str(found.nans)]


def _ranges(devices: Sequence[int], count: int) -> str:
    """`all`, `3`, `0-3, 6`; with many gaps, the first ranges and how many devices there are."""
    if len(devices) == count:
        return "all"
    parts: list[list[int]] = []
    for device in devices:
        if parts and parts[-1][-1] == device - 1:
            parts[-1][1:] = [device]
        else:
            parts.append([device])
    texts = ["-".join(map(str, part)) for part in parts]
    if len(texts) > _MOST_RANGES:
        texts[_MOST_RANGES - 1 :] = [f"… ({len(devices)})"]
    return ", ".join(texts)


_MOST_RANGES = 4


def number_text(number: float | None) -> str:
    """Four digits, for a table."""
    return "" if number is None else f"{number:.4g}"


def _first_values(array: Array, width: int) -> str:
    """As many values as fit."""
    text = ""
    for value in array.reshape(-1)[:width]:
        longer = f"{text} {_scalar_text(value)}".lstrip()
        if len(longer) > width - len(" …"):
            return f"{text} …".lstrip()
        text = longer
    return text


def _scalar_text(value: Any) -> str:
    if isinstance(value, np.bool_):
        return str(bool(value)).lower()
    if np.issubdtype(type(value), np.integer) or value.dtype.name.startswith(("int", "uint")):
        return str(int(value))
    return f"{complex(value):.4g}" if value.dtype.kind == "c" else f"{float(value):.4g}"


def value_to_json(value: Value) -> list[dict[str, object]]:
    """The arrays of a value; what JSON has no number for is a string: `"NaN"`, `"-Infinity"`."""
    return [
        {
            "type": element_name(array),
            "shape": list(array.shape),
            "statistics": _finite(statistics_of(array)._asdict()),
            "values": _nested(array),
        }
        for array in arrays_of(value)
    ]


def _finite(statistics: dict[str, Any]) -> dict[str, object]:
    return {name: None if n is None else _json_number(n) for name, n in statistics.items()}


def _nested(array: Array) -> object:
    if array.dtype.kind == "c":
        parts = np.stack([array.real, array.imag], -1)
        return _nested(parts)
    if array.dtype.kind not in "biufc":  # the small types of ml_dtypes
        is_integral = array.dtype.name.startswith(("int", "uint"))
        array = array.astype(np.int64 if is_integral else np.float64)
    return _json_numbers(array.tolist())


def _json_numbers(values: object) -> object:
    if isinstance(values, list):
        return [_json_numbers(value) for value in values]
    return _json_number(values) if isinstance(values, float) else values


def _json_number(number: float) -> object:
    if number != number:
        return "NaN"
    return number if abs(number) != float("inf") else f"{'-' * (number < 0)}Infinity"


def results_to_json(results: Sequence[Value], devices: Iterable[Device]) -> list[dict[str, object]]:
    """The outputs by device."""
    return [
        {
            "device": device.number,
            "replica": device.replica,
            "partition": device.partition,
            "outputs": value_to_json(value),
        }
        for device, value in zip(devices, results, strict=True)
    ]
