"""Assignments of XLA:GPU, for large modules."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hloopt.files import read_module
from hloopt.ir.attribute_format import braces
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import backend_of
from memory_lib.overlaps import overlaps

_KINDS = {"preallocated-temp": "temporary", "temp": "temporary"}


@dataclass(frozen=True, slots=True)
class GpuResult:
    """How one module's assignment compares with that of XLA:GPU."""

    id: str
    ours: int
    """Bytes of all allocations."""
    theirs: int
    same_kinds: bool
    """Whether there are as many allocations of each kind and color, all but temporaries of the
    same size."""
    is_final: bool
    """Whether the recorded text is what XLA assigned: it names every value that XLA placed."""
    right_offsets: int
    offsets: int
    overlaps: int
    instructions: int
    seconds: float
    """Processor time of the analysis, reading the text included."""


def gpu_records(oracle: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Every recorded module: id, its text as late as it is known, and what XLA:GPU says."""
    for path in sorted((oracle / "gpu").glob("*/*/memory.json.gz")):
        text = path.with_name("after_optimizations.hlo.gz")
        if not text.exists():
            text = path.with_name("after_lhs.hlo.gz")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield f"{path.parent.parent.name}/{path.parent.name}", text, json.load(file)


def compare_gpu(name: str, path: Path, record: dict[str, Any]) -> GpuResult:
    """Assign the buffers of a module and compare."""
    start = time.process_time()
    module = read_module(str(path))
    assignment = BufferAssignment.of(module, backend=backend_of(module))
    seconds = time.process_time() - start
    ours = Counter((a.kind.value, a.color, a.size) for a in assignment.allocations)
    theirs = Counter(
        (_KINDS.get(a["kind"], a["kind"]), a["color"], a["size"]) for a in record["allocations"]
    )
    placed = {
        _name(assignment, value): offset
        for allocation in assignment.allocations
        for value, offset in allocation.offsets.items()
    }
    recorded = {
        value["name"].removesuffix(" (phi)"): value["offset"]
        for allocation in record["allocations"]
        for value in allocation.get("values", ())
    }
    return GpuResult(
        id=name,
        ours=sum(a.size for a in assignment.allocations),
        theirs=sum(a["size"] for a in record["allocations"]),
        same_kinds=_without_temporaries(ours) == _without_temporaries(theirs),
        is_final=recorded.keys() <= placed.keys(),
        right_offsets=sum(placed.get(value) == offset for value, offset in recorded.items()),
        offsets=len(recorded),
        overlaps=len(overlaps(assignment)),
        instructions=module.instruction_count(),
        seconds=seconds,
    )


def _without_temporaries(allocations: Counter[tuple[str, int, int]]) -> Counter[object]:
    """Allocations by kind, color and size; of temporaries only that there are some."""
    return Counter(
        {
            (kind, color, 0 if kind == "temporary" else size): count
            for (kind, color, size), count in allocations.items()
        }
    )


def _name(assignment: BufferAssignment, value: int) -> str:
    instruction = assignment.flow.definer[value]
    if not instruction.shape.is_tuple:
        return instruction.name
    return instruction.name + braces(map(str, assignment.flow.index(value)))
