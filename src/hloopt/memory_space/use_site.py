"""A place at which an instruction reads a value."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.dataflow.slots import Index
from hloopt.ir import Instruction
from hloopt.ir.shapes.shape import Shape


@dataclass(frozen=True, slots=True)
class UseSite:
    """A part of an operand of an instruction."""

    instruction: Instruction
    operand: int
    """The number of the operand."""
    index: Index = ()
    """The shape index within the operand."""

    @property
    def shape(self) -> Shape:
        """The shape of the part. O(length of the index)."""
        shape = self.instruction.operands[self.operand].shape
        for number in self.index:
            shape = shape.elements[number]
        return shape
