"""Values that stand for what is removed: parameters in the entry, zeros elsewhere."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import zero_bits_text
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.tuples import make_tuple

_MOST_SPELLED = 16
"""Elements of an array that is written as a constant; a larger one is broadcast."""


class NotApplicable(Exception):
    """An edit cannot be made here; the candidate is dropped."""


class Substitutes:
    """Makes values of one computation that need nothing of it.

    In the entry each is a new parameter, so that the rest computes with the same freedom as before;
    elsewhere zeros, one for each shape.
    """

    def __init__(self, computation: Computation) -> None:
        self._computation = computation
        self._zeros: dict[Shape, Instruction] = {}
        self._parameters = len(computation.parameters)

    def of(self, shape: Shape) -> Instruction:
        """A value of a shape. Raises NotApplicable where there is none."""
        if self._computation.is_entry and not _has_token(shape):
            number = self._parameters
            self._parameters += 1
            return self._computation.add(Opcode.PARAMETER, shape, payload=str(number))
        return self.zero(shape)

    def zero(self, shape: Shape) -> Instruction:
        """Zeros of a shape, or a token. O(leaves). Raises NotApplicable."""
        found = self._zeros.get(shape)
        if found is None:
            found = self._zeros[shape] = self._make_zero(shape)
        return found

    def _make_zero(self, shape: Shape) -> Instruction:
        computation = self._computation
        if shape.is_tuple:
            return make_tuple(computation, [self.zero(element) for element in shape.elements])
        if shape.is_token:
            return computation.add(Opcode.AFTER_ALL, shape)
        element = shape.element_type
        if not shape.is_array or shape.is_dynamic or shape.is_buffer or element is None:
            raise NotApplicable
        payload = "false" if element.kind == "pred" else zero_bits_text(element)
        if shape.element_count() <= _MOST_SPELLED:
            return computation.add(Opcode.CONSTANT, shape, payload=payload)
        scalar = array_shape(element.name)
        if (value := self._zeros.get(scalar)) is None:
            value = computation.add(Opcode.CONSTANT, scalar, payload=payload)
            self._zeros[scalar] = value
        return computation.add(Opcode.BROADCAST, shape, [value], attributes={"dimensions": "{}"})


def _has_token(shape: Shape) -> bool:
    return any(leaf.is_token for leaf in shape.leaves())
