"""Leaves that must have one type although they hold different values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hloopt.analysis.dataflow import Position, slots_of
from hloopt.analysis.in_place import IN_PLACE, InPlace
from hloopt.ir import Instruction, Opcode
from hloopt.passes.precision.bfloat16_propagation.borders import (
    OF_ONE_TYPE,
    WITH_OWN_VALUES,
    carried,
    is_alone,
)
from hloopt.passes.precision.bfloat16_propagation.leaves import Leaves


class _Alias(NamedTuple):
    """The result at `slot` lies where an operand has its `operand_slot`."""

    slot: int
    operand: int
    operand_slot: int


class Agreement:
    """Asks which leaves have to be low for one to be low, and which cannot be without one.

    An array has the type of what it is written over, and where a fusion says so the other way
    round; a parameter of a fusion or scan that of the operand; the root that of the result. What a
    scan carries has one type all along, and what only passes elements on has that of its operands
    where there is no room for converts.
    """

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self._in_place = InPlace()
        self._dependent_users: dict[Instruction, list[Instruction]] = {}

    def models(self, instruction: Instruction, slot: int) -> Iterator[Position]:
        """The leaves that have to be low for a leaf to be low."""
        for alias in self._aliases(instruction):
            if alias.slot == slot:
                yield Position(instruction.operands[alias.operand], alias.operand_slot)
        if _has_no_room_for_converts(instruction):
            for operand in instruction.operands:
                if self.leaves.slots[operand.shape]:
                    yield Position(operand, 0)
        for owner in self._owners_at(instruction):
            if instruction.opcode is Opcode.PARAMETER:
                number = instruction.parameter_number
                yield Position(owner.operands[number], slot)
                for alias in self._aliases(owner):
                    if (alias.operand, alias.operand_slot) == (number, slot):
                        yield Position(owner, alias.slot)
            if instruction.is_root:
                yield Position(owner, slot)
        yield from self._carried(instruction, slot)

    def dependents(self, instruction: Instruction, slot: int) -> Iterator[Position]:
        """The leaves that cannot be low without a leaf: those it is a model of.

        O(users) the first time that an instruction is asked about.
        """
        for user in self._users_that_depend(instruction):
            for alias in self._aliases(user):
                if alias.operand_slot == slot and user.operands[alias.operand] is instruction:
                    yield Position(user, alias.slot)
            if user.opcode in WITH_OWN_VALUES:
                parameters = self.leaves.parameters(user.called[0])
                for number, operand in enumerate(user.operands):
                    if operand is instruction:
                        yield Position(parameters[number], slot)
            if _has_no_room_for_converts(user):
                yield Position(user, 0)
        if instruction.opcode in WITH_OWN_VALUES:
            yield Position(instruction.called[0].root, slot)
            parameters = self.leaves.parameters(instruction.called[0])
            for alias in self._aliases(instruction):
                if alias.slot == slot:
                    yield Position(parameters[alias.operand], alias.operand_slot)
        yield from self._carried(instruction, slot)

    def _users_that_depend(self, instruction: Instruction) -> list[Instruction]:
        found = self._dependent_users.get(instruction)
        if found is None:
            found = self._dependent_users[instruction] = [
                user
                for user in instruction.users
                if user.opcode in IN_PLACE
                or user.opcode in WITH_OWN_VALUES
                or _has_no_room_for_converts(user)
            ]
        return found

    def _aliases(self, instruction: Instruction) -> Iterator[_Alias]:
        if instruction.opcode not in IN_PLACE:
            return
        result = slots_of(instruction.shape)
        for output, number, index in self._in_place.pairs(instruction):
            slot = result.at(output)
            operand_slot = slots_of(instruction.operands[number].shape).at(index)
            if slot is not None and operand_slot is not None:
                yield _Alias(slot, number, operand_slot)

    def _owners_at(self, instruction: Instruction) -> list[Instruction]:
        """The fusions and scans at whose border an instruction stands, on the inside."""
        if instruction.opcode is not Opcode.PARAMETER and not instruction.is_root:
            return []
        return [c for c in instruction.parent.callers if c.opcode in WITH_OWN_VALUES]

    def _carried(self, instruction: Instruction, slot: int) -> Iterator[Position]:
        place = Position(instruction, slot)
        if instruction.opcode is Opcode.SCAN:
            yield from carried(self.leaves, instruction, place)
        for owner in self._owners_at(instruction):
            if owner.opcode is Opcode.SCAN:
                yield from carried(self.leaves, owner, place)


def _has_no_room_for_converts(instruction: Instruction) -> bool:
    return instruction.opcode in OF_ONE_TYPE and is_alone(instruction.parent)
