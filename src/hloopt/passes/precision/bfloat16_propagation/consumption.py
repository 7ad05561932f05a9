"""Whether readers of a value would take it in type low as well."""

from __future__ import annotations

from hloopt.analysis.dataflow import Use, slots_of
from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.passes.precision.bfloat16_propagation.borders import is_owner, receivers
from hloopt.passes.precision.bfloat16_propagation.leaves import Leaves
from hloopt.passes.precision.float_support import passes_through

_REDUCING = (Opcode.REDUCE, Opcode.REDUCE_WINDOW)


class Consumption:
    """Answers, for the types as they are decided so far, whether reads may be of type low.

    Instructions that are not in `visited` have not been decided yet; they are no obstacle.
    """

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.visited: set[Instruction] = set()
        self.kept: set[int] = set()
        """Values that must stay high, whoever reads them."""
        self.refused: dict[int, Use] = {}
        """Values that must stay high for a reader that needs all of their precision."""
        self._passing: dict[Computation, bool] = {}

    def all_consume(self, instruction: Instruction, slot: int) -> bool:
        """Whether all that is decided of the readers of a leaf takes it in type low.

        A value that was refused once stays so: later decisions take nothing back. O(readers).
        """
        for value in self.leaves.values(instruction, slot):
            if value in self.kept or value in self.refused:
                return False
            if not self.leaves.was_low(*self.leaves.definition(value)):
                use = self._first_obstacle(value)
                if use is not None:
                    self.refused[value] = use
                    return False
        return True

    def _first_obstacle(self, value: int) -> Use | None:
        for use in self.leaves.uses(value):
            if use.user in self.visited and not self.consumes(use):
                return use
        return None

    def consumes(self, use: Use) -> bool:
        """Whether one read takes its value in type low. O(1) but for the number of branches."""
        user, operand, slot = use
        leaves = self.leaves
        if has_own_side_effect(user):
            return False
        if is_owner(user):
            parameters = receivers(leaves, user, operand)
            return all(leaves.is_low(parameter, slot) for parameter in parameters)
        opcode = user.opcode
        if opcode is Opcode.ASYNC_DONE:
            return True
        if opcode is Opcode.BITCAST and leaves.was_low(user.operands[0], slot):
            return True
        if leaves.support.rounds_operand(user, operand):
            return True
        if not self.passes_through(user, operand):
            return False
        return leaves.is_low(user, _slot_of_result(use))

    def passes_through(self, user: Instruction, operand: int) -> bool:
        """The answer of `float_support.passes_through`, asked once of each reduction."""
        if user.opcode not in _REDUCING:
            return passes_through(user, operand)
        known = self._passing.get(user.called[0])
        if known is None:
            known = self._passing[user.called[0]] = passes_through(user, operand)
        return known


def _slot_of_result(use: Use) -> int:
    """Where a reader that passes a value on has it in its result."""
    user, operand, slot = use
    if user.opcode is Opcode.TUPLE:
        return slots_of(user.shape).element_starts[operand] + slot
    if user.opcode is Opcode.GET_TUPLE_ELEMENT:
        return slot - slots_of(user.operands[0].shape).element_starts[user.tuple_index]
    return slot
