"""Measured throughputs and costs that come as data: JSON files in `tables/`, read when asked for.

`tools/make_performance_tables.py` and `tools/make_operation_costs.py` make them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_FOLDER = Path(__file__).with_name("tables")
_OPERATIONS = "operations"


class Tables(NamedTuple):
    """The measurements of one device."""

    collectives: Mapping[str, Mapping[str, Mapping[int, int]]]
    """Bytes per second by opcode, then by devices of a group, or kind of permute, then by bytes."""
    matmul_sizes: Mapping[str, list[int]]
    """The measured sizes of the dimensions b, m, n and k, ascending."""
    matmuls: Mapping[str, list[int]]
    """Flops per second by types such as `bf16xbf16->bf16`, in row-major order of b, m, n, k; empty
    where no products were measured."""


@cache
def load_tables(name: str) -> Tables:
    """The tables of a device by their name, which has to be one of `table_names()`."""
    data = _read(name)
    matmuls = data["matmuls"]
    collectives = {
        opcode: {group: _by_bytes(runs) for group, runs in groups.items()}
        for opcode, groups in data["collectives"].items()
    }
    return Tables(collectives, matmuls["dimensions"], matmuls["flops_per_second"])


def _by_bytes(runs: Mapping[str, list[int]]) -> dict[int, int]:
    """The throughputs of several runs, each over sizes that double from its first on."""
    rates = {
        int(first) << step: rate for first, run in runs.items() for step, rate in enumerate(run)
    }
    return dict(sorted(rates.items()))


def table_names() -> list[str]:
    """The devices with measurements, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.json") if path.stem != _OPERATIONS)


class OperationCosts(NamedTuple):
    """The cost of one element of an elementwise operation on a GPU, in flops of 32 bits."""

    default: int
    others: Mapping[str, Mapping[str, int]]
    """By opcode and element type, where it is not `default`."""


@cache
def load_operation_costs() -> OperationCosts:
    """The costs that XLA:GPU reckons with."""
    data = _read(_OPERATIONS)
    return OperationCosts(data["default"], data["others"])


def _read(name: str) -> Any:
    return json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
