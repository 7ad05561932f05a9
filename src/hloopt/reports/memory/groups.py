"""Buffers that are alive together, in groups: alike ones, those of a scope, those of a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hloopt.analysis.source_lines import Basis
from hloopt.memory.model import LiveBuffer
from hloopt.patterns import pattern
from hloopt.reports.sources import NO_SOURCE, source_notes

GROUPINGS = ("buffer", "scope", "source")
NO_SCOPE = "(no op_name)"

_LAYOUT = pattern(r"\{[^{}]*\}")
_NUMBER = pattern(r"\d+")


@dataclass(slots=True)
class BufferGroup:
    """Buffers with something in common."""

    label: str
    """Their origin: an op_name or instruction, a scope, or a file and line. Numbers that
    differ among the op_names of alike buffers are `*`."""
    kind: str
    """Empty where the kinds differ."""
    shape: str
    """Without its layout; empty where the shapes differ."""
    count: int = 0
    size: int = 0
    """Bytes of all of them."""


def alike_key(buffer: LiveBuffer) -> tuple[str, str, str]:
    """A key that alike buffers share: kind, shape, and the origin but for numbers."""
    origin = buffer.op_name or f"%{buffer.name}"
    return buffer.kind, without_layout(buffer.shape), without_numbers(origin)


def without_layout(shape: str) -> str:
    """`f32[8]{0}` as `f32[8]`."""
    return _LAYOUT.sub("", shape)


def without_numbers(text: str) -> str:
    """Each number as `*`."""
    return _NUMBER.sub("*", text)


def grouped(buffers: Iterable[LiveBuffer], by: str, *, depth: int = 3) -> list[BufferGroup]:
    """The buffers in groups, the largest sum first; see `GROUPINGS`. O(n log n).

    By `buffer` those of one kind and shape are alike whose origins differ in numbers only. By
    `scope`, `depth` says how many parts of op_name count.
    """
    labels: dict[str, Callable[[LiveBuffer], str]] = {
        "buffer": lambda buffer: buffer.op_name or f"%{buffer.name}",
        "scope": lambda buffer: "/".join(buffer.op_name.split("/")[:depth]) or NO_SCOPE,
        "source": lambda buffer: buffer.source.label or NO_SOURCE,
    }
    label_of = labels[by]
    groups: dict[tuple[str, ...], BufferGroup] = {}
    for buffer in buffers:
        label = label_of(buffer)
        alike = alike_key(buffer)
        key = alike if by == "buffer" else (label,)
        _, shape, label_of_alike = alike
        group = groups.get(key)
        if group is None:
            group = groups[key] = BufferGroup(label, buffer.kind, shape)
        group.count += 1
        group.size += buffer.size
        if group.label != label:
            group.label = label_of_alike
        if group.kind != buffer.kind:
            group.kind = ""
        if group.shape != shape:
            group.shape = ""
    return sorted(groups.values(), key=lambda group: -group.size)


def source_notes_of(buffers: Iterable[LiveBuffer]) -> list[str]:
    """The basis of the lines that buffers are grouped by."""
    amounts: Counter[Basis] = Counter()
    for buffer in buffers:
        amounts[buffer.source.basis] += buffer.size
    return source_notes(amounts, "bytes")
