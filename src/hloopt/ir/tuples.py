"""Making tuples, and taking them apart."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import tuple_shape


def make_tuple(parent: Computation, elements: Iterable[Instruction]) -> Instruction:
    """A new tuple. O(elements)."""
    operands = list(elements)
    return parent.add(Opcode.TUPLE, tuple_shape(o.shape for o in operands), operands)


def read_element(value: Instruction, index: int) -> Instruction:
    """A new get-tuple-element beside a value. O(1)."""
    attributes = {"index": str(index)}
    shape = value.shape.elements[index]
    return value.parent.add(Opcode.GET_TUPLE_ELEMENT, shape, [value], attributes=attributes)


def element(value: Instruction, index: int) -> Instruction:
    """An element of a tuple: what was put in there, or a new get-tuple-element. O(1)."""
    return value.operands[index] if value.opcode is Opcode.TUPLE else read_element(value, index)


def is_parameter_element(value: Instruction) -> bool:
    """Whether a value is an element of a parameter: in a loop's body, of the loop's state."""
    return value.opcode is Opcode.GET_TUPLE_ELEMENT and value.operands[0].opcode is Opcode.PARAMETER


def is_only_taken_apart(value: Instruction) -> bool:
    """Whether only get-tuple-elements read a value, as none may. O(users)."""
    return not value.is_root and all(
        user.opcode is Opcode.GET_TUPLE_ELEMENT for user in value.users
    )
