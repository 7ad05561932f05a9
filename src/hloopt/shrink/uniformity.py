"""The arrays that are the same all along a dimension."""

from __future__ import annotations

import numpy as np

from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.shrink.facts import literal_elements

_DEEPEST = 64
"""The number of instructions that are followed to where an array comes from."""
_ELEMENTWISE = (ELEMENTWISE_BINARY | ELEMENTWISE_UNARY) | {
    Opcode.SELECT,
    Opcode.CLAMP,
    Opcode.OPT_BARRIER,
}


class Uniformity:
    """The arrays that are the same at all positions of a dimension."""

    def __init__(self) -> None:
        self._known: dict[tuple[Instruction, int], bool] = {}

    def holds(self, instruction: Instruction, dimension: int, depth: int = _DEEPEST) -> bool:
        """Whether `instruction` is surely uniform along `dimension`."""
        if instruction.shape.is_tuple or depth == 0:
            return False
        key = instruction, dimension
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._holds(instruction, dimension, depth - 1)
        return known

    def _holds(self, instruction: Instruction, dimension: int, depth: int) -> bool:
        opcode, operands = instruction.opcode, instruction.operands
        attributes = instruction.attributes
        if opcode is Opcode.BROADCAST:
            dimensions = parse_ints(attributes.get("dimensions", "{}"))
            if dimension not in dimensions:
                return True
            return self.holds(operands[0], dimensions.index(dimension), depth)
        if opcode is Opcode.CONSTANT:
            return dimension in uniform_dimensions(instruction)
        if opcode in _ELEMENTWISE:
            return all(
                not operand.shape.dimensions or self.holds(operand, dimension, depth)
                for operand in operands
            )
        if opcode is Opcode.TRANSPOSE:
            return self.holds(operands[0], parse_ints(attributes["dimensions"])[dimension], depth)
        if opcode in (Opcode.RESHAPE, Opcode.BITCAST):
            whole = range(operands[0].shape.rank)
            return all(self.holds(operands[0], d, depth) for d in whole)
        if opcode in (Opcode.SLICE, Opcode.DYNAMIC_SLICE):
            return self.holds(operands[0], dimension, depth)
        if opcode is Opcode.PARAMETER:
            callers = list(instruction.parent.callers)
            return len(callers) == 1 == (callers[0].opcode is Opcode.FUSION) and self.holds(
                callers[0].operands[instruction.parameter_number], dimension, depth
            )
        if opcode is Opcode.FUSION:
            return self.holds(instruction.called[0].root, dimension, depth)
        return False


def uniform_dimensions(constant: Instruction) -> frozenset[int]:
    """The dimensions along which the values of a constant array do not change."""
    shape = constant.shape
    elements = literal_elements(constant.payload, shape)
    if elements is None or not elements:
        return frozenset()
    if all(element == elements[0] for element in elements):
        return frozenset(range(shape.rank))
    values = np.array(elements).reshape(shape.dimensions)
    return frozenset(
        d for d in range(shape.rank) if bool((values == values.take([0], axis=d)).all())
    )
