"""What goes on beside the main stream: operations with a start and a done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hloopt.analysis.async_operations import async_form
from hloopt.ir import Instruction, Opcode
from hloopt.ir.shape import HOST_MEMORY_SPACE, Shape
from hloopt.ir.shape_size import shape_bytes


class Stream(NamedTuple):
    """Something that runs operations beside the main stream."""

    name: str
    limit: int | None
    """How many operations it runs at the same time; None: as many as are started."""


@dataclass(slots=True, eq=False)
class Operation:
    """One run of an operation. Times are cycles since its computation began."""

    start: Instruction
    done: Instruction
    stream: Stream
    latency: float
    """How long it takes where nothing slows it down."""
    issued: float = 0.0
    """When its start was over: it may begin."""
    begin: float = 0.0
    """When its stream had room for it."""
    finish: float = 0.0
    needed: float = 0.0
    """When the main stream had nothing else to do before its done."""

    @property
    def kind(self) -> Opcode:
        """What is done: all-gather, copy, call …"""
        return async_form(self.start).inner

    @property
    def exposed(self) -> float:
        """How long the main stream waits for it."""
        return max(0.0, self.finish - self.needed)

    @property
    def hidden(self) -> float:
        """How much of its latency other work covers."""
        return max(0.0, self.latency - self.exposed)

    @property
    def queued(self) -> float:
        """How long it waits for its stream."""
        return self.begin - self.issued

    @property
    def operand_bytes(self) -> int:
        """Bytes of what it takes, tables of tuples aside."""
        return _leaf_bytes(operand.shape for operand in self.start.operands)

    @property
    def result_bytes(self) -> int:
        """Bytes of what it leaves."""
        return _leaf_bytes((self.done.shape,))

    @property
    def size(self) -> int:
        """Bytes that it is about: the larger of operands and result."""
        return max(self.operand_bytes, self.result_bytes)

    @property
    def traffic(self) -> int:
        """Bytes it reads and writes in the memory of the device."""
        shapes = [operand.shape for operand in self.start.operands]
        return _leaf_bytes((*shapes, self.done.shape), on_device=True)


def _leaf_bytes(shapes: Iterable[Shape], *, on_device: bool = False) -> int:
    return sum(
        shape_bytes(leaf)
        for shape in shapes
        for leaf in shape.leaves()
        if leaf.is_array and not (on_device and leaf.layout.memory_space == HOST_MEMORY_SPACE)
    )
