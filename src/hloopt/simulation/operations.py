"""Operations beside the main stream: those with a start and a done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hloopt.analysis.async_operations import async_form, wrapped
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.memory_rates import MemoryRates
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.latency import Origin
from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.shape import Shape


class Stream(NamedTuple):
    """Something that runs operations beside the main stream."""

    name: str
    limit: int | None
    """The number of operations it runs at the same time; None: as many as are started."""
    spaces: tuple[str, str] | None = None
    """The memory spaces from which and to which it moves; None for what does other things."""


_PARTIAL = (Opcode.FUSION, Opcode.SLICE, Opcode.DYNAMIC_SLICE)
"""Operations that may read a part of an operand only."""
SYNCHRONOUS = Stream("synchronous", None)
"""Collectives that the main stream waits for at once: those that are not split, and those whose
start waits."""


@dataclass(slots=True, eq=False)
class Operation:
    """One run of an operation. Times are cycles since its computation began."""

    start: Instruction
    done: Instruction
    """`start` itself where the operation is not split."""
    stream: Stream
    latency: float
    """The time it takes where nothing slows it down."""
    issued: float = 0.0
    """The end of its start: it may begin."""
    begin: float = 0.0
    """The time at which its stream had room for it."""
    finish: float = 0.0
    needed: float = 0.0
    """The time at which the main stream had nothing else to do before its done."""
    origin: Origin = Origin.CONSTANT
    """The origin of its latency."""

    @property
    def kind(self) -> Opcode:
        """The operation itself: all-gather, copy, call …"""
        return async_form(self.start).inner

    @property
    def is_synchronous(self) -> bool:
        """Whether the main stream waits for all of it, so that nothing can hide it."""
        return self.stream is SYNCHRONOUS

    @property
    def exposed(self) -> float:
        """The time the main stream waits for it."""
        return max(0.0, self.finish - self.needed)

    @property
    def hidden(self) -> float:
        """The part of its latency other work covers."""
        return 0.0 if self.is_synchronous else max(0.0, self.latency - self.exposed)

    @property
    def queued(self) -> float:
        """The time it waits for its stream."""
        return self.begin - self.issued

    @property
    def size(self) -> int:
        """Bytes that it is about: the larger of what it takes and what it leaves."""
        return max(self._moved())

    def traffic(self, rates: MemoryRates) -> int:
        """Bytes it reads and writes in the main memory of the device."""
        read, written = self._moved()
        if any(_is_elsewhere(operand.shape, rates) for operand in self.start.operands):
            read = 0
        return read if _is_elsewhere(self.done.shape, rates) else read + written

    def _moved(self) -> tuple[int, int]:
        """Bytes read and written, wherever. Linear in what a wrapped fusion does."""
        if self.start.opcode is Opcode.ASYNC_START:
            work = wrapped(self.start)
            if work.opcode in _PARTIAL:
                cost = CostAnalysis(self.start.parent.module).of(work)
                return cost.bytes_read, cost.bytes_written
        read = sum(leaf_bytes(operand.shape) for operand in self.start.operands)
        return read, leaf_bytes(self.done.shape)


def _is_elsewhere(shape: Shape, rates: MemoryRates) -> bool:
    return rates.is_apart(shape) or any(leaf.is_on_host for leaf in shape.leaves())
