"""Whether readers of a value would take it in type low as well."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.dataflow import Use, slots_of
from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.passes.precision.bfloat16_propagation.borders import OWNERS, receivers
from hloopt.passes.precision.bfloat16_propagation.leaves import Leaves
from hloopt.passes.precision.float_support import passes_through

_READS_NOTHING = (Opcode.TUPLE, Opcode.DOMAIN)
_READS_TABLES = (Opcode.GET_TUPLE_ELEMENT, Opcode.COPY)
"""Instructions that read of a tuple where its elements are, not these."""
_REDUCING = (Opcode.REDUCE, Opcode.REDUCE_WINDOW)


class Consumption:
    """Answers, for the types as they are decided so far, whether reads may be of type low.

    Each read is asked once, when its reader is decided: no later decision changes the answer. So
    readers that have not been decided yet are no obstacle.
    """

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.kept: set[int] = set()
        """Values that must stay high, whoever reads them."""
        self.refused: dict[int, Use] = {}
        """Values that must stay high for a reader that needs all of their precision."""
        self.taken: set[int] = set()
        """Values that some reader takes in type low."""
        self._some_round = bool(leaves.support.operand_effectively_low)
        self._is_spmd = leaves.module.num_partitions > 1
        self._passing: dict[Computation, bool] = {}

    def all_consume(self, instruction: Instruction, slot: int) -> bool:
        """Whether all that is decided of the readers of a leaf takes it in type low. O(values)."""
        for value in self.leaves.values(instruction, slot):
            if value in self.kept or value in self.refused:
                return False
        return True

    def decided(self, user: Instruction) -> None:
        """Note for what a reader reads whether it takes it in type low, now that it is decided."""
        for use in self.reads(user):
            values = self.leaves.values(user.operands[use.operand], use.slot)
            if self.consumes(use):
                self.taken.update(values)
            else:
                for value in values:
                    self.refused.setdefault(value, use)

    def reads(self, user: Instruction) -> Iterator[Use]:
        """The reads of leaves of type high by one instruction, as `Dataflow.uses` has them.

        O(slots that are read), for roots O(slots of operands).
        """
        opcode = user.opcode
        if user.is_root:
            yield from self._reads_of_root(user)
        elif opcode not in _READS_NOTHING:
            for number, operand in enumerate(user.operands):
                slots = self.leaves.slots[operand.shape]
                if opcode in _READS_TABLES:
                    slots = slots[:1] if operand.shape.is_array else ()
                for slot in slots:
                    yield Use(user, number, slot)

    def _reads_of_root(self, root: Instruction) -> Iterator[Use]:
        """A root also reads what it passes on."""
        flow = self.leaves.flow
        given = flow.held_by(root)
        for number, operand in enumerate(root.operands):
            reads_all = root.opcode not in _READS_NOTHING and (
                root.opcode not in _READS_TABLES or operand.shape.is_array
            )
            held = flow.held[operand]
            for slot in self.leaves.slots[operand.shape]:
                if reads_all or not given.isdisjoint(flow.members((held[slot],))):
                    yield Use(root, number, slot)

    def consumes(self, use: Use) -> bool:
        """Whether one read takes its value in type low. O(1) but for the number of branches."""
        user, operand, slot = use
        opcode = user.opcode
        leaves = self.leaves
        if opcode in OWNERS:
            parameters = receivers(leaves, user, operand)
            takes_low = all(leaves.is_low(parameter, slot) for parameter in parameters)
        elif self.passes_through(user, operand) and leaves.is_low(user, _slot_of_result(use)):
            takes_low = True
        else:
            takes_low = opcode is Opcode.ASYNC_DONE or (
                self._some_round and leaves.support.rounds_operand(user, operand)
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
