"""One run of each computation of a schedule: its slices, and what it calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from hloopt.ir import Instruction
from hloopt.simulation import ComputationRun, Operation


class Slice(NamedTuple):
    """Something that takes time. Times are cycles since its computation began."""

    instruction: Instruction
    """The instruction that runs; of an operation its start; of waiting the done."""
    lane: int
    begin: float
    end: float
    operation: Operation | None = None
    """The operation that runs beside the main stream, or for which that waits."""
    is_wait: bool = False
    call: Call | None = None
    """The frames that a loop, call or conditional runs meanwhile, one lane below."""


@dataclass(slots=True, eq=False)
class Call:
    """The runs of computations by one loop, call or conditional: trip after trip of them."""

    instruction: Instruction
    begin: float
    """Cycles since the caller began."""
    end: float
    frames: list[tuple[Frame, int]]
    """The slices of each trip, in order, and the number of trips: the condition of a loop runs once
    more than its body."""
    trips: int
    """Of a loop how often the body runs; else 1."""
    scale: float
    """The factor by which it is slower here than by itself, where bandwidth is shared; else 1."""

    @property
    def rounds(self) -> int:
        """The number of times any of it runs: of a loop the trips, and the condition that ends
        it."""
        return max(times for _, times in self.frames)

    @property
    def period(self) -> float:
        """Cycles of a trip."""
        return self.scale * sum(frame.run.duration for frame, _ in self.frames)


@dataclass(slots=True, eq=False)
class Frame:
    """One run of a computation, laid out from 0."""

    run: ComputationRun
    level: int = 0
    """The lane of its main stream."""
    weight: float = 0.0
    """The number of times its time passes in a run of the module: its runs, and more where they are
    slowed down."""
    first: float = inf
    """The time at which it runs first, in cycles since the module began."""
    slices: list[Slice] = field(default_factory=list)
    """By lane, then by begin."""
    calls: list[Call] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    """Bytes in use from a time on, arguments of the entry included; not those during calls."""
    peak: int = 0
    """The most bytes in use, during calls too."""
    lanes: set[int] = field(default_factory=set)
    """Those it has slices in, during calls too."""
    size: int = 0
    """Slices and changes of memory with all trips written out."""
