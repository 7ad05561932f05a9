"""Allocations: where a value lies from one time to another, and which uses read it there."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.analysis.dataflow import Position, Use
from hloopt.ir import Instruction
from hloopt.memory_space.allocation.slices import TimedSlice
from hloopt.memory_space.heap.chunks import Chunk


@dataclass(slots=True, eq=False)
class Allocation:
    """A stay of a value in one memory; this class: from its definition on, without a copy.

    Times are positions in the flat schedule, both ends included.
    """

    position: Position
    """Where the value is defined, or reaches the computation."""
    chunk: Chunk | None
    """The place in alternate memory; None in default memory."""
    start: int
    end: int
    uses: list[Use] = field(default_factory=list)

    @property
    def available(self) -> int:
        """The time from which the value can be read or copied."""
        return self.start

    def extend(self, end: int) -> None:
        self.end = max(self.end, end)


@dataclass(slots=True, eq=False)
class CopyAllocation(Allocation):
    """A stay that begins with an asynchronous copy: a prefetch, or an eviction."""

    source: Allocation = field(kw_only=True)
    start_after: int = field(kw_only=True)
    """The copy-start follows what runs at this time."""
    done_before: int = field(kw_only=True)
    """The copy-done precedes what runs at this time."""
    cross_program_index: int | None = None
    """The rank among cross-program prefetches; None for other copies."""
    operation: Instruction | None = None
    """The synchronous operation that the copy replaces; None for one that copies the value."""
    operand: int = 0
    """The operand of `operation` that is copied."""
    slices: list[TimedSlice] = field(default_factory=list)
    """The slices in which it is done, in the order of memory; none for a copy as a whole."""
    is_for_next_run: bool = False
    """Whether the next run of the program reads it: nothing does in this one."""

    @property
    def available(self) -> int:
        return self.done_before


@dataclass(slots=True, eq=False)
class ParentAllocation(Allocation):
    """A stay in default memory within the body of a loop, which the loop passes through.

    The loop gets one more element for it, which holds `outside`.
    """

    outside: Allocation = field(kw_only=True)
    loop: Position = field(kw_only=True)
    """The element of the while that passes the value in alternate memory."""


@dataclass(slots=True, eq=False)
class MirroredAllocation(Allocation):
    """A stay that reads what another allocation holds: the value did not change in between."""

    original: Allocation = field(kw_only=True)
