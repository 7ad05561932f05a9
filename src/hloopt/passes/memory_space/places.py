"""Places: the parts of values that hold one array, through tuples and loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from hloopt.analysis.dataflow.slots import Index
from hloopt.ir.computation import Computation
from hloopt.ir.indexed_operands import operand_numbers
from hloopt.ir.instruction import Instruction
from hloopt.ir.loop_state import only_copies
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, tuple_shape

_WHOLE = -1
"""In place of the number of an element: all of a tuple."""


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
            for number in operand_numbers(user, value):
                yield user, number


def handed_on(user: Instruction, operand: int, path: Index) -> Place | None:
    """The place behind a tuple, an element of one, or an optimization barrier; else None. O(1)."""
    match user.opcode:
        case Opcode.GET_TUPLE_ELEMENT:
            return Place(user, path[1:])
        case Opcode.TUPLE:
            return Place(user, (operand, *path))
        case Opcode.OPT_BARRIER:
            return Place(user, path)
    return None


class Places:
    """The ways of many arrays through tuples and calls, while only users of arrays change."""

    def __init__(self) -> None:
        self._of_tuples: dict[Instruction, dict[int, list[tuple[Instruction, int]]]] = {}
        self._parameters: dict[Computation, list[Instruction]] = {}

    def parameters(self, computation: Computation) -> list[Instruction]:
        """Its parameters by number. O(instructions) the first time."""
        found = self._parameters.get(computation)
        if found is None:
            found = self._parameters[computation] = computation.parameters
        return found

    def readers(self, place: Place) -> Iterable[tuple[Instruction, int]]:
        """As the function. O(what is found); for a tuple O(its users) the first time."""
        value, path = place
        if not path:
            return readers(place)
        found = self._of_tuples.get(value)
        if found is None:
            found = self._of_tuples[value] = {}
            for user in value.users:
                is_element = user.opcode is Opcode.GET_TUPLE_ELEMENT
                wanted = user.tuple_index if is_element else _WHOLE
                found.setdefault(wanted, []).extend((user, n) for n in operand_numbers(user, value))
        return (*found.get(path[0], ()), *found.get(_WHOLE, ()))


def with_leaves(shape: Shape, leaves: Mapping[Index, Shape]) -> Shape:
    """A shape with other leaves. O(elements on the way)."""
    if () in leaves:
        return leaves[()]
    inside: dict[int, dict[Index, Shape]] = {}
    for path, leaf in leaves.items():
        inside.setdefault(path[0], {})[path[1:]] = leaf
    elements = list(shape.elements)
    for number, below in inside.items():
        elements[number] = with_leaves(elements[number], below)
    return tuple_shape(elements)


def with_leaf(shape: Shape, path: Index, leaf: Shape) -> Shape:
    """A shape with another leaf. O(elements on the way)."""
    return with_leaves(shape, {path: leaf})


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
