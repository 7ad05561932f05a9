"""Whether readers of a value would take it in type low as well."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.dataflow import Use, slots_of
from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.passes.precision.bfloat16_propagation.borders import OWNERS, receivers
from hloopt.passes.precision.bfloat16_propagation.leaves import Leaves
from hloopt.passes.precision.float_support import passes_through

_PASSES_TUPLES = (Opcode.TUPLE, Opcode.DOMAIN)
"""Instructions that do not read what they pass on."""
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
        self._is_spmd = leaves.module.num_partitions > 1
        self._passing: dict[Computation, bool] = {}

    def all_consume(self, instruction: Instruction, slot: int) -> bool:
        """Whether all that is decided of the readers of a leaf takes it in type low.

        A value that was refused once stays so: later decisions take nothing back. O(readers).
        """
        for value in self.leaves.values(instruction, slot):
            if value in self.kept or value in self.refused:
                return False
            obstacle = self._first_obstacle(value)
            if obstacle is not None:
                self.refused[value] = obstacle
                return False
        return True

    def _first_obstacle(self, value: int) -> Use | None:
        """A read that needs all precision; most are found among the nearest ones."""
        visited = self.visited
        for use in self.nearest_reads(value):
            if use.user in visited and not self.consumes(use):
                return use
        for use in self.leaves.uses(value):
            if use.user in visited and not self.consumes(use):
                return use
        return None

    def nearest_reads(self, value: int) -> Iterator[Use]:
        """The reads of a value where it is defined, if that is no tuple."""
        definer, slot = self.leaves.definition(value)
        if not slot:
            for user in definer.users:
                if user.opcode not in _PASSES_TUPLES:
                    yield Use(user, user.operands.index(definer), 0)

    def consumes(self, use: Use) -> bool:
        """Whether one read takes its value in type low. O(1) but for the number of branches."""
        user, operand, slot = use
        opcode = user.opcode
        leaves = self.leaves
        if opcode in OWNERS:
            parameters = receivers(leaves, user, operand)
            takes_low = all(leaves.is_low(parameter, slot) for parameter in parameters)
        elif opcode is Opcode.ASYNC_DONE or leaves.support.rounds_operand(user, operand):
            takes_low = True
        else:
            takes_low = self.passes_through(user, operand) and leaves.is_low(
                user, _slot_of_result(use)
            )
        return takes_low and not has_own_side_effect(user, is_spmd=self._is_spmd)

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
