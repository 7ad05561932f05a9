"""The memory report as plain data: what programs read, and what pictures are drawn from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hloopt.memory.model import MemoryReport
from hloopt.memory.statistics import MemoryStatistics


def memory_to_json(report: MemoryReport) -> dict[str, Any]:
    """The report, sizes in bytes; XLA's statistics under XLA's names.

    `timeline` holds `[position, bytes]` where the number of bytes changes.
    """
    result = asdict(report)
    result["statistics"] = statistics_to_json(report.statistics)
    result["peak"] = report.peak
    result["throughout"] = report.throughout
    result["positions"] = len(report.timeline)
    result["timeline"] = _changes(report.timeline)
    for buffer in result["live_at_peak"]:
        buffer["kind"] = str(buffer["kind"])
        buffer["live"] = list(buffer["live"])
    for allocation in result["allocations"]:
        allocation["kind"] = str(allocation["kind"])
        part = allocation["parameter"]
        if part is not None:
            allocation["parameter"] = {"number": part[0], "index": list(part[1])}
    return result


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
