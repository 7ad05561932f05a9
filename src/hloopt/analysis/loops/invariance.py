"""The instructions of a loop's body that compute the same in every trip."""

from __future__ import annotations

from functools import cached_property

from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir.callers import with_callers
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.loop_state import is_handed_on
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order

_DRAWS = frozenset(
    (
        *(Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE),
        *(Opcode.INFEED, Opcode.OUTFEED, Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE),
    )
)
"""Opcodes whose results are not made of their operands alone."""


class LoopInvariance:
    """The loop-invariant instructions of the while bodies of a module.

    Invariant are constants, elements of the state that every trip hands on, and what is computed
    of these alone. Collectives are computed of their operands as everything else is: all devices
    make the same trips. Valid while the module does not change.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._found: dict[Instruction, frozenset[Instruction]] = {}

    def of(self, loop: Instruction) -> frozenset[Instruction]:
        """The invariant instructions that stand in a loop's body itself. O(its body) once.

        What it calls is left aside: a call is invariant if its operands are.
        """
        if loop not in self._found:
            found: set[Instruction] = set()
            for instruction in post_order(loop.called[0]):
                if self._is_invariant(loop, instruction, found):
                    found.add(instruction)
            self._found[loop] = frozenset(found)
        return self._found[loop]

    def _is_invariant(
        self, loop: Instruction, instruction: Instruction, found: set[Instruction]
    ) -> bool:
        """Whether an instruction is, where `found` has all of its operands that are."""
        opcode = instruction.opcode
        if opcode is Opcode.PARAMETER:
            return not loop.shape.is_tuple and loop.called[0].root is instruction
        if opcode is Opcode.GET_TUPLE_ELEMENT:
            return _is_invariant_element(loop, instruction, found)
        return found.issuperset(instruction.operands) and not self._draws(instruction)

    def _draws(self, instruction: Instruction) -> bool:
        """Whether results of an instruction may differ although its operands do not."""
        return _draws_itself(instruction) or any(
            callee in self._drawing for callee in instruction.called
        )

    @cached_property
    def _drawing(self) -> set[Computation]:
        """The computations that draw from elsewhere, or call one that does."""
        return with_callers(
            computation
            for computation in self._module.computations.values()
            if any(map(_draws_itself, computation.instructions))
        )


def _draws_itself(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    return opcode in _DRAWS or (opcode is Opcode.CUSTOM_CALL and has_own_side_effect(instruction))


def _is_invariant_element(loop: Instruction, element: Instruction, found: set[Instruction]) -> bool:
    """Whether an element of a tuple is, through tuples and barriers of which others are not."""
    index, origin = element.tuple_index, element.operands[0]
    while origin.opcode is Opcode.OPT_BARRIER:
        origin = origin.operands[0]
    if origin.opcode is Opcode.TUPLE:
        return origin.operands[index] in found
    if origin.opcode is Opcode.PARAMETER:
        return is_handed_on(loop, index)
    return origin in found
