"""Segments to be allocated, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Flag, auto

from hloopt.memory_space.allocation.allocations import Allocation
from hloopt.memory_space.allocation.conversions import Conversion
from hloopt.memory_space.allocation.values import AllocationValue, TimedUse
from hloopt.memory_space.heap.chunks import Chunk


class Reason(Flag):
    """Reasons why a use does not read alternate memory."""

    NONE = 0
    NO_ROOM = auto()
    TOO_FAR = auto()
    TOO_SHORT = auto()
    OUTSTANDING = auto()
    BANDWIDTH = auto()
    FIFO = auto()
    REQUIRED = auto()
    TOO_LARGE = auto()


class GivenUp(Exception):
    """The buffer cannot be placed so: all that was done for it has to be undone."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class NotConverted(Exception):
    """An operation cannot become asynchronous: its buffer has to be done again without that."""

    def __init__(self, conversion: Conversion, reason: Reason) -> None:
        super().__init__(str(reason))
        self.conversion, self.reason = conversion, reason


@dataclass(slots=True)
class PlannedConversion:
    """A conversion with the times that bound it, and what its result lies in until when."""

    conversion: Conversion
    result: AllocationValue
    earliest: int
    """The time after which all operands are there."""
    done_before: int
    end: int
    """The time of the first use."""


@dataclass(slots=True)
class Request:
    """A segment to be allocated, and what its surroundings allow."""

    owner: AllocationValue
    site: TimedUse
    start: int
    latest_prefetch: int
    all_use_times: Sequence[int]
    """Times of the uses of the whole buffer, sorted."""
    allow_no_copy: bool = True
    allow_prefetch: bool = True
    earliest_prefetch: int | None = None
    preferred_prefetch: int | None = None
    """The time after which a prefetch should start, by the plan of a loop."""
    preferred_chunk: Chunk | None = None
    extra_outstanding: int = 0
    is_last_try: bool = False
    in_alternate: bool | None = None
    """Whether the use is colored alternate, or default; None: it is not colored."""
    defined_in_alternate: bool = False
    """Whether the position at the start is colored alternate."""
    at_any_distance: bool = False
    """Whether the value may stay however far the use is."""
    prefers_to_stay: bool = False
    """Whether it should stay so, by the plan of a loop."""
    conversion: PlannedConversion | None = None

    @property
    def end(self) -> int:
        return self.site.time

    @property
    def size(self) -> int:
        return self.owner.size


def live_at(sequence: Sequence[Allocation], time: int) -> Allocation:
    """The last allocation that holds the value at a time."""
    for allocation in reversed(sequence):
        if allocation.start <= time <= allocation.end:
            return allocation
    return sequence[-1]
