"""Places: the parts of values that hold one array, through tuples and loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hloopt.analysis.dataflow.slots import Index
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.loop_state import only_copies
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


def hands_on(loop: Instruction, path: Index) -> bool:
    """Whether every trip of a loop leaves a part of its state as it is. O(instructions passed)."""
    body = loop.called[0]
    place = Place(body.root, path)
    while place.instruction.opcode is not Opcode.PARAMETER:
        value, inner = place
        if value.opcode is Opcode.TUPLE and inner:
            place = Place(value.operands[inner[0]], inner[1:])
        elif value.opcode is Opcode.GET_TUPLE_ELEMENT:
            place = Place(value.operands[0], (value.tuple_index, *inner))
        elif value.opcode is Opcode.OPT_BARRIER or only_copies(value):
            place = Place(value.operands[0], inner)
        else:
            return False
    return place.path == path


def called_elsewhere(loop: Instruction) -> Computation | None:
    """A computation of a loop that something else calls, too; None without one."""
    return next((called for called in loop.called if sum(called.callers.values()) > 1), None)
