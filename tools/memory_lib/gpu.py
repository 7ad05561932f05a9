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
from hloopt.ir.attributes.formats import braces
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import Backend, backend_of
from hloopt.text import parse_module
from memory_lib.overlaps import overlaps

FINAL = "after_optimizations.hlo.gz"
"""The text after the last pass, where it is recorded."""
_KINDS = {"preallocated-temp": "temporary", "temp": "temporary"}


@dataclass(frozen=True, slots=True)
class GpuResult:
    """The way one module's assignment compares with that of XLA:GPU."""

    id: str
    ours: int
    """Bytes of all allocations."""
    theirs: int
    same_kinds: bool
    """Whether there are as many allocations of each kind and color, all but temporaries of the
    same size."""
    wrong_kinds: tuple[str, ...]
    """The kinds of which there are allocations of other sizes."""
    is_final: bool
    """Whether the text is what XLA assigned: the last one, or one with all values XLA placed."""
    changes: str
    """Edits of later passes to an earlier text."""
    right_offsets: int
    offsets: int
    overlaps: int
    instructions: int
    seconds: float
    """Processor time of the analysis, reading the text included."""


def gpu_records(oracle: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Every recorded module: id, its text as late as it is known, and what XLA:GPU says."""
    for path in sorted((oracle / "gpu").glob("*/*/memory.json.gz")):
        text = path.with_name(FINAL)
        if not text.exists():
            text = path.with_name("after_lhs.hlo.gz")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield f"{path.parent.parent.name}/{path.parent.name}", text, json.load(file)


def compare_gpu(
    name: str,
    path: Path,
    record: dict[str, Any],
    final_text: str | None = None,
    backend: Backend | None = None,
) -> GpuResult:
    """Assign the buffers of a module, or of its text after the last pass, and compare.

    By the rules of `backend`, or of the one that the module tells.
    """
    start = time.process_time()
    module = read_module(str(path)) if final_text is None else parse_module(final_text)
    assignment = BufferAssignment.of(module, backend=backend or backend_of(module))
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
    values = [value for a in record["allocations"] for value in a.get("values", ())]
    sizes = {value["name"].removesuffix(" (phi)"): value["size"] for value in values}
    recorded = {value["name"].removesuffix(" (phi)"): value["offset"] for value in values}
    is_final = path.name == FINAL or final_text is not None or recorded.keys() <= placed.keys()
    return GpuResult(
        id=name,
        ours=sum(a.size for a in assignment.allocations),
        theirs=sum(a["size"] for a in record["allocations"]),
        same_kinds=_without_temporaries(ours) == _without_temporaries(theirs),
        wrong_kinds=tuple(
            sorted({kind for kind, color, size in (ours - theirs) + (theirs - ours)})
        ),
        is_final=is_final,
        changes="" if is_final else _changes(sizes, _sizes(assignment)),
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


def _sizes(assignment: BufferAssignment) -> dict[str, int]:
    """The sizes of values by name, but those of reducers, which are not recorded."""
    return {
        _name(assignment, value): assignment.buffers.value_size(value)
        for allocation in assignment.allocations
        if not allocation.is_thread_local
        for value in allocation.offsets
    }


def _changes(theirs: dict[str, int], ours: dict[str, int]) -> str:
    """The way the values that XLA placed differ from those of an earlier text."""
    return f"later passes made {_summary(theirs, ours)} and took away {_summary(ours, theirs)}"


def _summary(values: dict[str, int], others: dict[str, int]) -> str:
    only = [name for name in values if name not in others]
    kinds = Counter(
        "rematerialized" if ".remat" in name else "copies"
        for name in only
        if ".remat" in name or name.startswith("copy")
    )
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "no copies"
    return f"{len(only)} values of {sum(values[name] for name in only):,} bytes ({counts})"


def _name(assignment: BufferAssignment, value: int) -> str:
    instruction = assignment.flow.definer[value]
    if not instruction.shape.is_tuple:
        return instruction.name
    return instruction.name + braces(map(str, assignment.flow.index(value)))
