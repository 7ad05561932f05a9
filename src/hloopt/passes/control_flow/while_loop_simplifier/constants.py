"""Constants are not carried from trip to trip: body and condition have them."""

from __future__ import annotations

from collections.abc import Mapping

from hloopt.analysis.equality import Equality
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.passes.control_flow.while_loop_simplifier.state import (
    MayApply,
    StateChange,
    change_state,
    hands_on,
)
from hloopt.passes.rewriting.replace import inherit


def propagate_constants(loop: Instruction, may_apply: MayApply) -> int:
    """Let constants stand for scalars that start as constants and that no trip changes.

    How many elements of the state. O(users of the state).
    """
    init, root = loop.operands[0], loop.called[0].root
    if init.opcode is not Opcode.TUPLE or root.opcode is not Opcode.TUPLE:
        return 0
    constants = {
        index: value
        for index, value in enumerate(init.operands)
        if value.opcode is Opcode.CONSTANT
        and value.shape.is_scalar
        and hands_on(loop.called[0], index)
    }
    if not (constants and may_apply()):
        return 0
    for computation in loop.called:
        for read in list(computation.parameters[0].users):
            if read.opcode is Opcode.GET_TUPLE_ELEMENT and read.tuple_index in constants:
                constant = computation.add_clone(constants[read.tuple_index], [])
                inherit(read, constant)
                read.replace_all_uses_with(constant)
    return len(constants)


def remove_constants(loop: Instruction, may_apply: MayApply) -> int:
    """Drop elements that start as the constant that the body makes of them; how many.

    O(users of the state + elements + size of the constants).
    """
    init, root = loop.operands[0], loop.called[0].root
    if init.opcode is not Opcode.TUPLE or root.opcode is not Opcode.TUPLE:
        return 0
    equality = Equality(is_layout_sensitive=True)
    constants = {
        index: first
        for index, (first, following) in enumerate(zip(init.operands, root.operands, strict=True))
        if first.opcode is following.opcode is Opcode.CONSTANT
        and equality.constant(first) == equality.constant(following)
    }
    if not (constants and may_apply()):
        return 0
    change_state(loop, _WithoutConstants(init, constants))
    return len(constants)


class _WithoutConstants(StateChange):
    def __init__(self, init: Instruction, constants: Mapping[int, Instruction]) -> None:
        elements = init.shape.elements
        self._constants = constants
        self._count = len(elements)
        self._kept = [index for index in range(self._count) if index not in constants]
        self.shape = tuple_shape(elements[index] for index in self._kept)

    def inward(self, old: Instruction) -> Instruction:
        return make_tuple(old.parent, [read_element(old, index) for index in self._kept])

    def outward(self, new: Instruction) -> Instruction:
        kept = (read_element(new, number) for number in range(len(self._kept)))
        return make_tuple(
            new.parent,
            [
                self._constant(index, new) if index in self._constants else next(kept)
                for index in range(self._count)
            ],
        )

    def _constant(self, index: int, beside: Instruction) -> Instruction:
        constant = self._constants[index]
        if constant.parent is beside.parent:
            return constant
        return beside.parent.add_clone(constant, [])

    def leaves(self, old: list[str], blank: str) -> list[str]:
        return [old[index] for index in self._kept] if len(old) == self._count else []
