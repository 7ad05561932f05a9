#!/usr/bin/env python3
"""Make the tables of measured throughputs in src/hloopt/targets/tables from those of XLA.

    tools/make_performance_tables.py --shared DIR [--check]

XLA measured matrix products and collectives on GPUs, and ships the figures as protocol buffers
(default_matmul_perf_table, default_collective_perf_table; Apache License 2.0). The tables keep
what the `sol` cost model reads: throughputs, without the programs they were measured with. With
`--check` nothing is written; exits 1 if a table would change.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from hloopt.analysis.latency.collective_tables import permute_kind
from hloopt.analysis.latency.text_proto import Fields, parse_text_proto

DEVICES = {
    "sm_90": "NVIDIA H100",
    "sm_100_B200": "NVIDIA B200",
    "sm_100_GB200": "NVIDIA GB200",
    "sm_103": "NVIDIA GB300",
}
"""The devices that targets name, by the keys of XLA's tables; no products were measured of the last
two."""
TABLES = Path(__file__).parents[1] / "src" / "hloopt" / "targets" / "tables"
_ELEMENT_BYTES = {"F32": 4}


def main(arguments: list[str] | None = None) -> int:
    """Write the tables, or say whether they are up to date; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(arguments)
    folder = options.shared / "oracle" / "perf_tables"
    collectives = _devices(folder / "default_collective_perf_table.txtpb")
    matmuls = _devices(folder / "default_matmul_perf_table.txtpb")
    is_current = True
    for device, title in DEVICES.items():
        table = {
            "source": "measured by the authors of XLA: default_collective_perf_table"
            f"{' and default_matmul_perf_table' if device in matmuls else ''} "
            f"(Apache License 2.0), {title}",
            "collectives": _collectives(collectives[device]),
            "matmuls": _matmuls(matmuls.get(device, [])),
        }
        text = _text(table)
        path = TABLES / f"{device.lower()}.json"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            is_current = False
            if not options.check:
                path.write_text(text, encoding="utf-8")
            print(f"{'differs' if options.check else 'wrote'}: {path.name}")
    return 1 if options.check and not is_current else 0


def _devices(path: Path) -> dict[str, list[Fields]]:
    """The entries of each device."""
    table = parse_text_proto(path.read_text(encoding="utf-8"), path.name)
    return {_text_of(e, "key"): _all(_one(e, "value"), "entries") for e in _all(table, "entries")}


def _collectives(entries: list[Fields]) -> dict[str, dict[str, dict[str, list[int]]]]:
    """Bytes per second by opcode, then by devices of a group, or kind of permute, then by the
    smallest size of a run, from which on the sizes of its list double.

    Of what was measured twice with one size the last counts, as in XLA.
    """
    found: dict[str, dict[str, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for entry in entries:
        instruction = _one(entry, "instruction")
        opcode = _text_of(instruction, "opcode")
        shape = _one(instruction, "shape")
        size = int(_text_of(shape, "dimensions")) * _ELEMENT_BYTES[_text_of(shape, "element_type")]
        if opcode == "collective-permute":
            pairs = [
                (int(_text_of(pair, "source", "0")), int(_text_of(pair, "target", "0")))
                for pair in _all(instruction, "source_target_pairs")
            ]
            group = permute_kind(pairs)
        else:
            group = _text_of(_one(instruction, "iota_collective_device_list"), _GROUP_SIZE)
            if opcode == "reduce-scatter":  # its bytes are those that go in
                size *= int(group)
        rate = int(_text_of(entry, "network_throughput_bytes_per_sec", "0"))
        if rate:  # of 288 B over 72 devices by an all-reduce XLA has none: it would take for ever
            found[opcode][group][size] = rate
    return {
        opcode: {group: _runs(sizes) for group, sizes in sorted(groups.items(), key=_by_group)}
        for opcode, groups in sorted(found.items())
    }


_GROUP_SIZE = "num_devices_per_group"


def _by_group(row: tuple[str, object]) -> tuple[int, str]:
    """Numbers of devices in their order, kinds of permutes in that of letters."""
    group = row[0]
    return (int(group) if group.isdigit() else 0), group


def _runs(sizes: dict[int, int]) -> dict[str, list[int]]:
    """The throughputs in runs of sizes that double."""
    runs: dict[str, list[int]] = {}
    left = dict(sorted(sizes.items()))
    while left:
        first = size = next(iter(left))
        run = runs[str(first)] = []
        while size in left:
            run.append(left.pop(size))
            size *= 2
    return runs


def _matmuls(entries: list[Fields]) -> dict[str, Any]:
    """FLOP per second by types, in row-major order of the dimensions."""
    sizes = {d: sorted({int(_text_of(entry, d)) for entry in entries}) for d in "bmnk"}
    rates: dict[str, dict[tuple[int, ...], int]] = defaultdict(dict)
    for entry in entries:
        place = tuple(int(_text_of(entry, dimension)) for dimension in "bmnk")
        for rate in _all(entry, "flops"):
            rates[_text_of(rate, "key")][place] = int(_text_of(rate, "value"))
    return {
        "dimensions": sizes,
        "flops_per_second": {
            types: [by_place[place] for place in sorted(by_place)]
            for types, by_place in sorted(rates.items())
        },
    }


def _text(table: dict[str, Any]) -> str:
    """JSON with a line for each list of numbers."""
    lists: list[str] = []

    def shorten(value: Any) -> Any:
        if isinstance(value, list):
            lists.append(json.dumps(value, separators=(",", ":")))
            return f"@{len(lists) - 1}@"
        if isinstance(value, dict):
            return {key: shorten(part) for key, part in value.items()}
        return value

    text = json.dumps(shorten(table), indent=1)
    for number, numbers in enumerate(lists):
        text = text.replace(f'"@{number}@"', numbers)
    return text + "\n"


def _all(fields: Fields, name: str) -> list[Fields]:
    return [value for value in fields.get(name, ()) if isinstance(value, dict)]


def _one(fields: Fields, name: str) -> Fields:
    (value,) = _all(fields, name)
    return value


def _text_of(fields: Fields, name: str, default: str | None = None) -> str:
    value = fields[name][0] if name in fields else default
    assert isinstance(value, str), f"no {name}"
    return value


if __name__ == "__main__":
    sys.exit(main())
