"""Results of memory space assignment, written by hand, and what the checker says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hloopt.ir import Module
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.passes.memory_space.report import MemorySpaceReport, PlacedChunk
from hloopt.text import parse_module
from memory_space_lib.checker import check
from memory_space_lib.faults import Kind

Places = Mapping[str, tuple[int, int]]
"""Offset and size by name, or by name and shape index: `w[0]`."""

OPTIONS = MemorySpaceOptions(max_size_in_bytes=96, alignment_in_bytes=8)


def report_of(module: Module, places: Places, **more: Any) -> MemorySpaceReport:
    named = {i.name: i for c in module.computations.values() for i in c.instructions}
    chunks = []
    for key, (offset, size) in places.items():
        name, _, index = key.rstrip("]").partition("[")
        parts = tuple(int(part) for part in index.split(",") if part)
        chunks.append(PlacedChunk(named[name], parts, offset, size))
    return MemorySpaceReport(chunks, **more)


def kinds(
    before: str,
    after: str,
    places: Places,
    options: MemorySpaceOptions = OPTIONS,
    **more: Any,
) -> set[Kind]:
    module = parse_module(after)
    report = report_of(module, places, **more)
    return {fault.kind for fault in check(parse_module(before), module, options, report)}


def edited(text: str, edits: Sequence[tuple[str, str]]) -> str:
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text
