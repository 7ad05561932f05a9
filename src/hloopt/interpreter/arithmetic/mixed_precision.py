"""Operations in which several floating-point types meet: the result is of the type it states."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.interpreter.values import Value, dtype_of_shape
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape

_OF_ONE_TYPE = (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.CONVERT, Opcode.PARAMETER)
"""Instructions whose result is of the stated type in any case."""


def mixes_precisions(instruction: Instruction) -> bool:
    """Whether operands, result and what is applied have several floating-point types.

    O(their leaves).
    """
    if instruction.opcode in _OF_ONE_TYPE:
        return False
    shapes = [instruction.shape, *[operand.shape for operand in instruction.operands]]
    shapes += [called.root.shape for called in instruction.called]
    kinds = {shape.element_type for shape in shapes}
    if None in kinds:
        kinds = {leaf.element_type for shape in shapes for leaf in shape.leaves()}
    return sum(kind is not None and kind.is_floating for kind in kinds) > 1


def kernel_in_stated_types(function: Callable[..., Value]) -> Callable[..., Value]:
    """A kernel of which the result has the types that the instruction states.

    Kernels compute in the types of operands, or of what they apply.
    """

    def run(instruction: Instruction, *operands: Value) -> Value:
        return in_stated_types(instruction, function(instruction, *operands))

    return run


def in_stated_types(instruction: Instruction, value: Value) -> Value:
    """A result of an instruction in the types that it states."""
    return _converted(value, instruction.shape)


def _converted(value: Value, shape: Shape) -> Value:
    if shape.is_tuple:
        return tuple(map(_converted, value, shape.elements))
    return value if value is None else value.astype(dtype_of_shape(shape), copy=False)
