"""Memory space assignment of large modules, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from hloopt.ir import Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.targets.load import load_target
from hloopt.text import parse_module, print_module
from memory_space_lib.examine import Result, assign
from memory_space_lib.faults import Fault
from memory_space_lib.programs import prepare
from memory_space_lib.sharing import Sharing
from memory_space_lib.timeline import Timeline

_MEBIBYTE = 1 << 20
_ALTERNATE_IS_FASTER = 10.0
"""Times the bandwidth of default memory: no figure is published for VMEM."""
_VECTOR_SHARE = 0.02
"""Transcendentals per second as a part of matrix flops per second, of which none are published."""
_FORMAT = "{:44} {:>4} {:>12} {:>8} {:>7} {:>7} {:>7}  {}"


@dataclass(frozen=True, slots=True)
class Row:
    """One module at one size of alternate memory."""

    module: str
    mebibytes: int
    instructions: int
    seconds: float
    values: float
    """The part of the values, arrays of more than one element, in alternate memory at some time."""
    bytes: float
    copies: int
    faults: list[Fault]

    def __str__(self) -> str:
        verdict = f"{len(self.faults)} faults" if self.faults else "ok"
        return _FORMAT.format(
            self.module[:44],
            self.mebibytes,
            f"{self.instructions:,}",
            f"{self.seconds:.2f}",
            f"{self.values:.1%}",
            f"{self.bytes:.1%}",
            f"{self.copies:,}",
            verdict,
        )


def header() -> str:
    """The titles of the columns."""
    titles = ("module", "MiB", "instructions", "seconds", "values", "bytes", "copies", "verdict")
    return _FORMAT.format(*titles)


def options_of(target_name: str, mebibytes: int) -> dict[str, Any]:
    """The options of an assignment by the rates of a target."""
    target = load_target(target_name)
    flops = target.matrix_rate("bf16")
    assert flops is not None, f"{target_name} has no rate of dot products"
    fast = _ALTERNATE_IS_FASTER * target.memory_bandwidth
    return {
        "max_size_in_bytes": mebibytes * _MEBIBYTE,
        "alignment_in_bytes": 512,
        "prefetch_interval_picker": {"kind": "cost-analysis"},
        "cost_model": {
            "flops_per_second": flops,
            "transcendentals_per_second": _VECTOR_SHARE * flops,
            "default_mem_bandwidth_bytes_per_second": target.memory_bandwidth,
            "alternate_mem_read_bandwidth_bytes_per_second": fast,
            "alternate_mem_write_bandwidth_bytes_per_second": fast,
        },
        "sort": {"kind": "memory-boundedness"},
        "max_outstanding_prefetches": 32,
        "max_outstanding_evictions": 32,
    }


def row_of(path: Path, mebibytes: int, target: str) -> Row:
    """Assign a module and check the result."""
    result = assign(_prepared(path), options_of(target, mebibytes))
    values, sizes = shares(result)
    copies = sum(1 for _ in result.module.instructions(Opcode.COPY_START))
    count = result.module.instruction_count()
    return Row(path.stem, mebibytes, count, result.seconds, values, sizes, copies, result.faults)


@lru_cache(maxsize=1)
def _prepared(path: Path) -> str:
    module = parse_module(path.read_text())
    prepare(module)
    return print_module(module)


def shares(result: Result) -> tuple[float, float]:
    """The parts of values and of their bytes that are in alternate memory when they are made."""
    line = Timeline.of(result.module)
    sharing = Sharing(line)
    counts, sizes = [0, 0], [0, 0]
    for position, shape in enumerate(line.shapes):
        is_first = sharing.values.find(position) == position
        if not (is_first and shape.is_array and shape.element_count() > 1):
            continue
        if line.holders[position].opcode in (Opcode.COPY_START, Opcode.PARAMETER):
            continue
        is_inside = int(shape.layout.memory_space != 0)
        counts[is_inside] += 1
        sizes[is_inside] += shape_bytes(shape)
    return counts[1] / max(1, sum(counts)), sizes[1] / max(1, sum(sizes))
