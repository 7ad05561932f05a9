"""The benefit of moving a group: data that need not cross the border, in tenths of a value."""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.control_flow.conditional_code_motion.boundaries import Group, Position
from hloopt.passes.control_flow.conditional_code_motion.facts import Facts
from hloopt.passes.control_flow.conditional_code_motion.tuning import Tuning

NO_BENEFIT = -1
_WHOLE = 10
_FREE = (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.GET_TUPLE_ELEMENT)


class Benefit:
    """Computes the benefit of groups of one conditional."""

    def __init__(self, facts: Facts, kept: Container[Instruction], tuning: Tuning | None) -> None:
        self._facts = facts
        self._kept = kept
        self._tuning = tuning
        self._destinations = Destinations(facts)

    def of(self, group: Group) -> int:
        """The benefit of a group, negative where moving it is not worth while.

        O(operands of what moves), besides what facts take.
        """
        instructions = [boundary.first for boundary in group.moved]
        opcodes = [instruction.opcode for instruction in instructions]
        if group.position is Position.USER:
            if opcodes == [Opcode.GET_TUPLE_ELEMENT]:
                return NO_BENEFIT
        elif all(opcode is Opcode.TUPLE for opcode in opcodes):
            return NO_BENEFIT
        if self._tuning is not None and not self._tuning.tunes_weights:
            return 1
        before = after = 0
        for instruction in instructions:
            if instruction is not self._facts.root:
                before += self._before(instruction)
                after += self._after(instruction, group.position)
        copies = self._copies_saved(group)
        if before == after == copies == 0:
            return NO_BENEFIT
        if group.position is Position.INSIDE:
            return after - before
        if group.position is Position.USER:
            return before - after - 1 + copies
        return 1 if after else 0

    def _weight(self, operand: Instruction, user: Instruction) -> int:
        """The benefit of having an operand and its user on one side of the border."""
        whole = _whole_weight(operand, user)
        is_shared = operand.opcode is not Opcode.CONDITIONAL
        if self._tuning is not None and self._tuning.tunes_weights:
            weight = self._tuning.decide((operand.opcode, user.opcode), whole, -_WHOLE)
            is_shared = is_shared or weight < 0
            whole = abs(weight)
        if not is_shared:
            return whole
        users, operands = self._facts.user_count(operand), self._facts.operand_count(user)
        return whole // max(users, 1) // max(operands, 1)

    def _before(self, instruction: Instruction) -> int:
        """The weight of operands that do not move with the instruction."""
        conditional = self._facts.conditional
        total = 0
        for operand in instruction.operands:
            if operand is not conditional and operand not in self._kept:
                continue
            user, source = instruction, operand
            if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
                if not instruction.users:
                    continue
                user = next(iter(instruction.users))
                root = self._facts.root
                if operand is conditional and root.opcode is Opcode.TUPLE:
                    source = root.operands[instruction.tuple_index]
            total += self._weight(source, user)
        return total

    def _after(self, instruction: Instruction, position: Position) -> int:
        """The weight of the edge of a moving instruction and the user that it moves from or to."""
        if position is Position.OPERAND:
            return _WHOLE if self._destinations.is_used_in_some(instruction) else 0
        if instruction.opcode is Opcode.CONSTANT or len(instruction.users) != 1:
            return 0
        (user,) = instruction.users
        if user is self._facts.root:
            index = self._facts.operand_number(user, instruction)
            reader = self._facts.reader_of_element(index)
            return 0 if reader is None else self._weight(instruction, reader)
        return self._weight(instruction, user) if user in self._kept else 0

    def _copies_saved(self, group: Group) -> int:
        """The weight of copies in branches that moved copies may meet and undo."""
        if group.position is not Position.USER:
            return 0
        conditional = self._facts.conditional
        saved = 0
        for boundary in group.moved:
            copy = boundary.first
            if copy.opcode is not Opcode.COPY:
                continue
            element = copy.operands[0]
            if (
                element.opcode is not Opcode.GET_TUPLE_ELEMENT
                or element.operands[0] is not conditional
            ):
                continue
            for root in self._facts.roots.instructions:
                if root.opcode is not Opcode.TUPLE:
                    continue
                given = root.operands[element.tuple_index]
                if given.opcode is Opcode.COPY and given.operands[0].shape is copy.shape:
                    saved += _WHOLE
        return saved


def _whole_weight(operand: Instruction, user: Instruction) -> int:
    if user.opcode is Opcode.GET_TUPLE_ELEMENT or operand.opcode in _FREE:
        return 0
    if user.opcode is Opcode.CONVERT and operand.opcode in (Opcode.DOT, Opcode.CONVOLUTION):
        return 0
    return _WHOLE


class Destinations:
    """Follows operands to the conditional, and says which branches use them there."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._ways: dict[Instruction, tuple[Instruction | None, int | None]] = {}
        """The operand of the conditional that it leads to, and the element of that, a tuple."""
        self._counts: dict[tuple[Instruction, int | None], int] = {}

    def is_used_in_some(self, instruction: Instruction) -> bool:
        """Whether an operand is used in fewer branches than there are.

        No for what leads elsewhere by its first user. XLA gives up after 1000 users one behind the
        other, but what is nearer has the same answer and moves with them.
        """
        argument, element = self._way(instruction)
        if argument is None:
            return False
        count = self._counts.get((argument, element))
        if count is None:
            operands = self._facts.conditional.operands[1:]
            count = sum(
                operand is argument
                and (used is None or (bool(used) if element is None else element in used))
                for operand, used in zip(operands, self._used, strict=True)
            )
            self._counts[argument, element] = count
        return count < len(self._facts.conditional.called)

    @cached_property
    def _used(self) -> list[set[int] | None]:
        """The elements of its argument that each branch uses; None for the whole of it."""
        return [_used_elements(branch.parameters[0]) for branch in self._facts.conditional.called]

    def _way(self, start: Instruction) -> tuple[Instruction | None, int | None]:
        path: list[Instruction] = []
        current = start
        while current not in self._ways:
            user = next(iter(current.users), None)
            if user is None:
                self._ways[current] = None, None
            elif user is self._facts.conditional:
                self._ways[current] = current, None
            else:
                path.append(current)
                current = user
        for each in reversed(path):
            user = next(iter(each.users))
            argument, element = self._ways[user]
            if user is argument and user.opcode is Opcode.TUPLE:
                element = self._facts.operand_number(user, each)
            self._ways[each] = argument, element
        return self._ways[start]


def _used_elements(parameter: Instruction) -> set[int] | None:
    """The elements of its parameter that a branch uses; None for the whole of it. O(users)."""
    if parameter.is_root or any(
        user.opcode is not Opcode.GET_TUPLE_ELEMENT for user in parameter.users
    ):
        return None
    return {user.tuple_index for user in parameter.users}
