"""One more element for the state of a loop."""

from __future__ import annotations

from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.tuples import element
from hloopt.passes.rewriting.replace import forget_value


def pass_through(loop: Instruction, value: Instruction) -> Instruction:
    """Let a loop hand `value` to its body, which leaves it as it is; the body's reader of it.

    What reads the whole state of the loop, or of its parameters, gets the elements that were there.
    What was said of the whole, its sharding say, is forgotten.
    O(elements + users).
    """
    number = len(loop.shape.elements)
    body, condition = loop.called
    loop.set_operands([_extended(loop.operands[0], value)])
    (condition_parameter,) = condition.parameters
    (parameter,) = body.parameters
    _grow(condition_parameter, value.shape)
    _grow(parameter, value.shape)
    inside = element(parameter, number)
    if body.root.opcode is Opcode.TUPLE and not body.root.users:
        body.root.set_operands([*body.root.operands, inside])
        body.root.set_shape(tuple_shape((*body.root.shape.elements, value.shape)))
        forget_value(body.root)
    else:
        body.set_root(_extended(body.root, inside))
    _grow(loop, value.shape)
    return inside


def _extended(whole: Instruction, value: Instruction) -> Instruction:
    """A tuple of the elements of another, and one more."""
    elements = [*_elements(whole), value]
    shape = tuple_shape(part.shape for part in elements)
    return whole.parent.add(Opcode.TUPLE, shape, elements)


def _elements(whole: Instruction) -> list[Instruction]:
    if whole.opcode is Opcode.TUPLE:
        return whole.operands
    return [element(whole, number) for number in range(len(whole.shape.elements))]


def _grow(whole: Instruction, shape: Shape) -> None:
    """Append an element to what an instruction gives, and let its readers read the others."""
    old = whole.shape
    readers = [u for u in whole.users if u.opcode is not Opcode.GET_TUPLE_ELEMENT]
    if readers or whole.is_root:
        parts = [element(whole, number) for number in range(len(old.elements))]
        rest = whole.parent.add(Opcode.TUPLE, old, parts)
        for reader in readers:
            reader.exchange_operand(whole, rest)
        if whole.is_root:
            whole.parent.set_root(rest)
    whole.set_shape(tuple_shape((*old.elements, shape)))
    forget_value(whole)
