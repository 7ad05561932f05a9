"""The memory report as plain data: what programs read, and what pictures are drawn from."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

from hloopt.memory.limit import needed_bytes
from hloopt.memory.model import LiveBuffer, MemoryReport, PeakInstruction
from hloopt.memory.places import PlacedBuffer
from hloopt.memory.statistics import MemoryStatistics
from hloopt.reports.sources import StackTable


def memory_to_json(report: MemoryReport, stacks: StackTable | None = None) -> dict[str, Any]:
    """The report, sizes in bytes; XLA's statistics under XLA's names.

    `timeline` holds `[position, bytes]` where the number of bytes changes. `stacks` are those that
    buffers refer to, of a table that may be shared.
    """
    stacks = stacks or StackTable()
    result = asdict(replace(report, live_at_peak=[], peak_instruction=None, spaces=[]))
    del result["apart"]
    result["spaces"] = spaces_to_json(report)
    result["live_at_peak"] = [buffer_to_json(buffer, stacks) for buffer in report.live_at_peak]
    result["stacks"] = stacks.stacks
    peak = report.peak_instruction
    result["peak_instruction"] = None if peak is None else _with_source(peak, stacks)
    result["statistics"] = statistics_to_json(report.statistics)
    result["peak"] = report.peak
    result["throughout"] = report.throughout
    result["positions"] = len(report.timeline)
    result["timeline"] = _changes(report.timeline)
    for allocation in result["allocations"]:
        allocation["kind"] = str(allocation["kind"])
        part = allocation["parameter"]
        if part is not None:
            allocation["parameter"] = {"number": part[0], "index": list(part[1])}
    return result


def spaces_to_json(report: MemoryReport) -> list[dict[str, Any]]:
    """Each memory space in which anything lies; `traffic` null where that is one only."""
    return [
        {
            "number": use.number,
            "name": use.name,
            "needed": needed_bytes(use.statistics),
            "statistics": statistics_to_json(use.statistics),
            "traffic": None if use.traffic is None else asdict(use.traffic),
        }
        for use in report.spaces
    ]


def buffer_to_json(buffer: LiveBuffer | PlacedBuffer, stacks: StackTable) -> dict[str, Any]:
    """A buffer, with the line of the program that it is from."""
    result = _with_source(buffer, stacks)
    return result | {"kind": str(buffer.kind), "live": list(buffer.live)}


def _with_source(
    found: LiveBuffer | PlacedBuffer | PeakInstruction, stacks: StackTable
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields(found):
        if field.name == "source":
            values |= stacks.source_to_json(found.source)
        else:
            values[field.name] = getattr(found, field.name)
    return values


def statistics_to_json(statistics: MemoryStatistics) -> dict[str, int | None]:
    """XLA's names and bytes; None for the size of code, which a module does not tell."""
    result: dict[str, int | None] = {}
    for prefix, sizes in (("", statistics.device), ("host_", statistics.host)):
        for name, size in asdict(sizes).items():
            result[f"{prefix}{name}_size_in_bytes"] = size
        result[f"{prefix}generated_code_size_in_bytes"] = None
    result |= {
        "peak_memory_in_bytes": statistics.peak_memory,
        "peak_unpadded_heap_bytes": statistics.peak_unpadded_heap_bytes,
        "total_allocation_bytes": statistics.total_allocation_bytes,
        "indefinite_allocations": statistics.indefinite_allocations,
        "constant": statistics.constant,
        "thread_local": statistics.thread_local,
        "total": statistics.total,
        "heap": statistics.heap,
        "fragmentation": statistics.fragmentation,
    }
    return result


def _changes(timeline: list[int]) -> list[list[int]]:
    before = [-1, *timeline]
    return [[i, size] for i, size in enumerate(timeline) if size != before[i]]
