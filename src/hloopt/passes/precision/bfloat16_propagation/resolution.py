"""One type for all values that meet, and for all leaves that hold a value."""

from __future__ import annotations

from hloopt.analysis.dataflow import Position, Use
from hloopt.ir import Instruction, Opcode
from hloopt.passes.precision.bfloat16_propagation.agreement import Agreement
from hloopt.passes.precision.bfloat16_propagation.borders import WITH_OWN_VALUES
from hloopt.passes.precision.bfloat16_propagation.consumption import Consumption
from hloopt.passes.precision.bfloat16_propagation.fixed import is_fixed
from hloopt.passes.precision.bfloat16_propagation.leaves import Leaves


class Resolution:
    """Takes proposals back until what remains fits together.

    A value is low or high as a whole, and so are all leaves that hold it. It becomes high where a
    leaf holds it beside one that is, where a reader does not take it in type low any more, and
    where a leaf that it has to agree with is high. Each value is taken back once; what may depend
    on it is asked again then.
    """

    def __init__(self, leaves: Leaves, consumption: Consumption) -> None:
        self.leaves = leaves
        self.consumption = consumption
        self.agreement = Agreement(leaves)
        self._low: dict[int, list[Position]] = {}
        """The values that are low, as far as is known, each with the leaves that hold it."""

    def run(self) -> None:
        """Make `leaves.low` agree with values. Near-linear in the uses of proposed values."""
        leaves = self.leaves
        for instruction, slots in leaves.low.items():
            for slot in sorted(slots):
                for value in leaves.values(instruction, slot):
                    if leaves.definition(value) == (instruction, slot):
                        self._low[value] = leaves.positions(value)
        leaves.low.clear()
        proposed = list(self._low.items())
        for value, held_at in proposed:
            for place in held_at:
                if self._can_be_low(value, place):
                    leaves.lower(*place)
        for value, held_at in proposed:
            if value in self._low and not self._fits(value, held_at):
                self._take_back([value])
        readers = dict.fromkeys(user for instruction in leaves.low for user in instruction.users)
        for reader in readers:
            for use in self.consumption.reads(reader):
                self._check(use)

    def _check(self, use: Use) -> None:
        """Take values back that a reader does not take in type low."""
        source = Position(use.user.operands[use.operand], use.slot)
        still_low = self._low_values(source)
        if still_low and not self.consumption.consumes(use):
            self._take_back(still_low)

    def _can_be_low(self, value: int, place: Position) -> bool:
        instruction, slot = place
        if slot not in self.leaves.slots[instruction.shape]:
            return False
        if place != self.leaves.definition(value) and is_fixed(instruction):
            return False
        return all(other in self._low for other in self.leaves.values(instruction, slot))

    def _fits(self, value: int, held_at: list[Position]) -> bool:
        leaves = self.leaves
        return (
            value not in self.consumption.kept
            and all(leaves.is_low(*place) for place in held_at)
            and all(
                leaves.is_low(*model)
                for place in held_at
                for model in self.agreement.models(*place)
            )
        )

    def _take_back(self, waiting: list[int]) -> None:
        """Let values stay high, with all that cannot be low without them."""
        while waiting:
            value = waiting.pop()
            held_at = self._low.pop(value, None)
            if held_at is None:
                continue
            for place in held_at:
                self.leaves.restore(*place)
                waiting += self._low_values(place)
                for dependent in self.agreement.dependents(*place):
                    waiting += self._low_values(dependent)
            for use in self._reads_behind(value, held_at):
                source = Position(use.user.operands[use.operand], use.slot)
                still_low = self._low_values(source)
                if still_low and not self.consumption.consumes(use):
                    waiting += still_low

    def _low_values(self, place: Position) -> list[int]:
        return [value for value in self.leaves.values(*place) if value in self._low]

    def _reads_behind(self, value: int, held_at: list[Position]) -> list[Use]:
        """The reads that were taken in type low because a value was low."""
        definer, slot = self.leaves.definition(value)
        reads = [
            Use(definer, number, slot)
            for number, operand in enumerate(definer.operands)
            if slot in self.leaves.slots[operand.shape]
        ]
        for instruction, slot in held_at:
            if instruction.opcode is Opcode.PARAMETER:
                reads += self._reads_of_callers(instruction, slot)
        return reads

    def _reads_of_callers(self, parameter: Instruction, slot: int) -> list[Use]:
        return [
            Use(caller, parameter.parameter_number, slot)
            for caller in parameter.parent.callers
            if caller.opcode in WITH_OWN_VALUES
        ]
