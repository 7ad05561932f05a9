"""Computed values, for people and for programs: statistics, tables, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hloopt.diagnostics import counted
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.values import Array, Value, arrays_of, element_name, type_text
from hloopt.reports.console.units import more_text, page_width

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


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
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    rows = output_rows(results)
    if not rows:
        console.print("no outputs")
        return
    table = ReportTable(gap=2)
    table.add_column("output", justify="right")
    if len(results) > 1:
        table.add_column("devices")
    table.add_column("type")
    for name in ("min", "max", "mean", "NaN"):
        table.add_column(name, justify="right")
    table.add_column("values", style="dim", stays=False)
    for row in rows[:top]:
        found = statistics_of(row.array)
        table.add_row(
            str(row.leaf),
            *([_ranges(row.devices, len(results))] if len(results) > 1 else []),
            partial(_broken_type, type_text(row.array)),
            *map(number_text, (found.minimum, found.maximum, found.mean)),
            Text(f"{found.nans:,}", style="red" if found.nans else "dim"),
            partial(_first_values, row.array),
        )
    console.print(table, width=page_width(console))
    if len(rows) > top:
        console.print(Text(more_text(len(rows) - top, console.width), style="dim"))


def _broken_type(text: str, width: int) -> Text:
    """`f32[2,3]`, broken between dimensions where it is too long."""
    from rich.text import Text

    lines = [""]
    for part in text.replace(",", ",\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return Text("\n".join(lines))


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


def value_to_json(value: Value, *, in_full: bool = True) -> list[dict[str, object]]:
    """The arrays of a value, with their values if `in_full`; what JSON has no number for is a
    string: `"NaN"`, `"-Infinity"`."""
    return [
        {
            "type": element_name(array),
            "shape": list(array.shape),
            "statistics": _finite(statistics_of(array)._asdict()),
            **({"values": _nested(array)} if in_full else {}),
        }
        for array in arrays_of(value)
    ]


def _finite(statistics: dict[str, Any]) -> dict[str, object]:
    return {name: None if n is None else json_number(n) for name, n in statistics.items()}


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
    return json_number(values) if isinstance(values, float) else values


def json_number(number: float) -> object:
    """A number, or a string where JSON has none: `"NaN"`, `"-Infinity"`."""
    if number != number:
        return "NaN"
    return number if abs(number) != float("inf") else f"{'-' * (number < 0)}Infinity"


_JSON_BYTES = 160
"""Bytes of a number as an object of Python and as text."""


class JsonRoom:
    """The most bytes that values may take as JSON; None is no bound."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._taken = 0

    def take(self, elements: int) -> None:
        """Room for so many numbers. Raises RunError where there is none."""
        self._taken += elements * _JSON_BYTES
        if self._most is not None and self._taken > self._most:
            raise RunError(
                f"values would take {counted(self._taken, 'byte')} as JSON, the limit is "
                f"{self._most:,}",
                code="HLO503",
                help="-o writes outputs into a file; --max-memory allows more",
            )


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
