"""Stacks of residuals: arrays that one loop writes slice by slice, and later loops read."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.memory_space.places import Place


class NotOffloaded(Exception):
    """The reason why a stack stays in device memory: the reason of a remark."""


@dataclass(frozen=True, slots=True)
class Access:
    """A dynamic-slice or dynamic-update-slice of a stack."""

    slicing: Instruction
    fusion: Instruction | None
    """The fusion that it is in."""
    result: Instruction
    """The instruction that gives what was read, or the stack after a write."""
    loop: Instruction | None = None
    """Of a write, the loop whose trips make it."""

    @property
    def piece(self) -> Shape:
        """The shape of what is read or written."""
        slicing = self.slicing
        is_read = slicing.opcode is Opcode.DYNAMIC_SLICE
        return slicing.shape if is_read else slicing.operands[1].shape

    def start(self, dimension: int) -> Instruction:
        """The index that a dimension of the slice starts at."""
        return self.slicing.operands[self._indices + dimension]

    @property
    def _indices(self) -> int:
        return 1 if self.slicing.opcode is Opcode.DYNAMIC_SLICE else 2


@dataclass(slots=True)
class Stack:
    """A stack with all that touches it."""

    fill: Instruction
    """The initial value."""
    user: Instruction
    """The instruction that takes the initial value as its `operand`."""
    operand: int
    places: dict[Place, None] = field(default_factory=dict)
    """All that holds the stack."""
    copies: list[Instruction] = field(default_factory=list)
    """Copies of the whole stack, which is not changed once it is read."""
    writes: list[Access] = field(default_factory=list)
    """In the order they run in; in a loop, in each trip."""
    reads: list[Access] = field(default_factory=list)
    """None of them runs before the last write."""
    dimension: int = 0
    """The dimension that is sliced."""
