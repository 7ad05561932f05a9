"""Assignments of XLA:CPU: its own programs, and scheduled modules of XLA's unit tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hloopt.ir.attributes.formats import braces
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.statistics import MemoryStatistics, statistics_of
from hloopt.reports.memory.record import statistics_to_json
from hloopt.text import parse_module
from memory_lib.overlaps import overlaps

_KINDS = {"temp": "temporary", "thread_local": "thread-local"}


@dataclass(slots=True)
class CpuResult:
    """The way one module's assignment compares with that of XLA:CPU."""

    id: str
    wrong: list[str] = field(default_factory=list)
    """Differences other than offsets."""
    has_statistics: bool = False
    """Whether XLA:CPU could compile the module: else no statistics and traces are recorded."""
    offsets: int = 0
    right_offsets: int = 0
    overlaps: int = 0


def cpu_records(oracle: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every recorded module: id, text, and what XLA:CPU says."""
    with (oracle / "memory_tests" / "assignments.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield record["id"], record["module"], record
    for path in sorted((oracle / "memory").glob("*/memory.json")):
        text = path.with_name("after_optimizations.hlo").read_text(encoding="utf-8")
        yield path.parent.name, text, json.loads(path.read_text(encoding="utf-8"))


def compare_cpu(name: str, text: str, record: dict[str, Any]) -> CpuResult:
    """Assign the buffers of a module and compare all there is to compare."""
    assignment = BufferAssignment.of(parse_module(text))
    result = CpuResult(name, overlaps=len(overlaps(assignment)))
    result.has_statistics = record["stats"] is not None
    ours = [(a.kind.value, a.size) for a in assignment.allocations]
    theirs = [(_KINDS.get(a["kind"], a["kind"]), a["size"]) for a in record["allocations"]]
    if ours != theirs:
        result.wrong.append("allocations")
    if record["stats"] and _statistics(statistics_of(assignment), record):
        result.wrong.append("statistics")
    if _live_ranges(assignment) != _recorded_ranges(record):
        result.wrong.append("live ranges")
    traces = [trace["events"] for trace in record["heap_traces"]]
    if record["stats"] and _traces(assignment) != traces:
        result.wrong.append("heap traces")
    found = {
        (assignment.flow.numbers[value], _position(assignment, value)): offset
        for allocation in assignment.allocations
        for value, offset in allocation.offsets.items()
    }
    for number, position, offset in _recorded_offsets(record):
        result.offsets += 1
        result.right_offsets += found.get((number, position)) == offset
    return result


def _statistics(statistics: MemoryStatistics, record: dict[str, Any]) -> list[str]:
    """The fields that differ."""
    found = statistics_to_json(statistics)
    expected = dict(record["stats"])
    if "total_allocation_bytes" in record:
        expected["total_allocation_bytes"] = record["total_allocation_bytes"]
    wrong = [name for name, value in expected.items() if found[name] != value]
    without = record.get("peak_without_temporaries", statistics.peak_without_temporaries)
    return wrong + ["peak_without_temporaries"] * (without != statistics.peak_without_temporaries)


def _position(assignment: BufferAssignment, value: int) -> str:
    flow = assignment.flow
    instruction = flow.definer[value]
    index = braces(map(str, flow.index(value))) if instruction.shape.is_tuple else ""
    return instruction.name + index + " (phi)" * (value in flow.phis)


def _live_ranges(assignment: BufferAssignment) -> dict[str, list[int]]:
    flow, ranges = assignment.flow, assignment.ranges
    return {
        flow.definer[v].name + braces(map(str, flow.index(v))): [ranges.start[v], ranges.end[v]]
        for v in flow.values()
        if ranges.start[v] >= 0
    }


def _recorded_ranges(record: dict[str, Any]) -> dict[str, list[int]]:
    found: dict[str, Any] = record["live_ranges"]
    ranges: dict[str, list[int]] = found.get("ranges", found)
    return ranges


def _traces(assignment: BufferAssignment) -> list[list[list[object]]]:
    flow = assignment.flow
    return [
        [
            [str(event.kind), flow.numbers[event.value], flow.definer[event.value].name]
            + [flow.numbers[event.canonical]] * (event.kind == "share")
            for event in trace.events
        ]
        for _, trace in sorted(assignment.traces.items())
    ]


def _recorded_offsets(record: dict[str, Any]) -> Iterator[tuple[int, str, int]]:
    for allocation in record["allocations"]:
        for value in allocation["values"]:
            if isinstance(value, dict):
                yield value["id"], value["position"], value["offset"]
            else:
                yield value[0], value[1], value[3]
