"""Places: the parts of values that hold one array, through tuples and loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hloopt.analysis.dataflow.slots import Index
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, tuple_shape


class Place(NamedTuple):
    """The part of a value that holds an array."""

    instruction: Instruction
    path: Index = ()

    @property
    def shape(self) -> Shape:
        """The shape of what it holds. O(length of the path)."""
        shape = self.instruction.shape
        for number in self.path:
            shape = shape.elements[number]
        return shape


def readers(place: Place) -> Iterator[tuple[Instruction, int]]:
    """The instructions that take what a place holds, with the number of the operand."""
    value, path = place
    for user in value.users:
        if user.opcode is Opcode.GET_TUPLE_ELEMENT:
            if user.tuple_index == path[0]:
                yield user, 0
        else:
            for number, operand in enumerate(user.operands):
                if operand is value:
                    yield user, number


def with_leaf(shape: Shape, path: Index, leaf: Shape) -> Shape:
    """A shape with another leaf. O(elements on the way)."""
    if not path:
        return leaf
    elements = list(shape.elements)
    elements[path[0]] = with_leaf(elements[path[0]], path[1:], leaf)
    return tuple_shape(elements)
