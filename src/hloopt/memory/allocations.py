"""An allocation: one piece of memory, and which values lie where in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from hloopt.analysis.dataflow.slots import Index

_FEW = 32


class AllocationKind(StrEnum):
    """The kind of an allocation. A parameter that is also an output is a parameter."""

    PARAMETER = "parameter"
    OUTPUT = "output"
    CONSTANT = "constant"
    THREAD_LOCAL = "thread-local"
    TEMPORARY = "temporary"


class ParameterPart(NamedTuple):
    """A part of a parameter of the entry."""

    number: int
    part: Index
    """Its shape index."""


@dataclass(slots=True, eq=False)
class Allocation:
    """A piece of memory for the values in `offsets`, never two needed at once in one byte."""

    size: int
    """Bytes."""
    color: int
    """The memory space."""
    parameter: ParameterPart | None = None
    is_aliased: bool = False
    """Whether it is a parameter that an output is aliased with, so that it may be written."""
    is_constant: bool = False
    is_thread_local: bool = False
    is_tuple: bool = False
    """Whether it holds a table of pointers."""
    is_live_out: bool = False
    """Whether the result of the program lies in it."""
    is_heap: bool = False
    """Whether the heap simulation filled it."""
    heap_size: int = 0
    """Bytes the simulation needed: the part of the size that is not a pointer table."""
    offsets: dict[int, int] = field(default_factory=dict)
    """By value, in the order they were placed."""

    @property
    def kind(self) -> AllocationKind:
        if self.parameter is not None:
            return AllocationKind.PARAMETER
        if self.is_constant:
            return AllocationKind.CONSTANT
        if self.is_thread_local:
            return AllocationKind.THREAD_LOCAL
        return AllocationKind.OUTPUT if self.is_live_out else AllocationKind.TEMPORARY

    @property
    def is_reusable(self) -> bool:
        """Whether other values may be placed here."""
        if self.is_constant or self.is_thread_local or self.is_tuple:
            return False
        return self.parameter is None or self.is_aliased


@dataclass(slots=True, eq=False)
class Occupation:
    """The ranges in which an allocation is in use, in order: those of its values, which at most
    touch."""

    allocation: Allocation
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    widest: float = float("inf")
    """No gap is longer; unknown of many ranges."""

    def add(self, start: int, end: int, value: int) -> None:
        at = bisect_right(self.starts, start)
        while at and self.ends[at - 1] > end:  # one of no length goes before one that starts there
            at -= 1
        self.starts.insert(at, start)
        self.ends.insert(at, end)
        self.values.insert(at, value)
        self.widest = float("inf")

    def measure(self, length: int) -> None:
        """Note the widest gap in a schedule of `length`. O(1): nothing for many ranges."""
        if len(self.starts) <= _FEW:
            bounds = zip([0, *self.ends], [*self.starts, length], strict=True)
            self.widest = max(after - before for before, after in bounds)

    def is_in_use(self, start: int, end: int) -> bool:
        """Whether a range meets the given one in more than an end. O(log ranges)."""
        number = bisect_right(self.ends, start)
        return number < len(self.starts) and self.starts[number] < end

    def touching(self, start: int, end: int) -> range:
        """The numbers of the ranges that overlap or touch the given one. O(log ranges)."""
        return range(bisect_left(self.ends, start), bisect_right(self.starts, end))
