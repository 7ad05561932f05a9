"""Copies where arrays become buffers `b(…)`, which cannot be copied, and arrays again."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.calls import loops_with_body
from hloopt.analysis.dataflow import slots_of
from hloopt.analysis.dataflow.slots import Index
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.values import parse_output_to_operand_aliasing
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.ordering import depends_on
from hloopt.passes.copy_insertion.deep_copy import all_slots, copy_operand, replace_by_copy
from hloopt.passes.copy_insertion.transfers import elements_of_state

PIN = "Pin"
CHAIN_STARTS = (PIN, "CreateBuffer")


def copy_around_chain(instruction: Instruction) -> None:
    """Copy what becomes a buffer; in a loop that carries the buffer on, what it becomes as well.

    What the previous trip has left there is then read before the new buffer is begun.
    """
    if custom_call_target(instruction) not in CHAIN_STARTS:
        return
    previous = _end_of_previous(instruction)
    copies = copy_operand(instruction, 0) if instruction.operands else {}
    if previous is None:
        return
    for copy in copies.values():
        copy.add_control_predecessor(previous.instruction)
    instruction.add_control_predecessor(previous.instruction)
    for part in previous.results():
        for copy in replace_by_copy(part, all_slots(part)).values():
            instruction.add_control_predecessor(copy)


@dataclass(frozen=True, slots=True)
class _Link:
    """A place in a chain of operations on one buffer: a result, or an element of it."""

    instruction: Instruction
    index: Index

    def results(self) -> list[Instruction]:
        """The instructions that give what is at this place."""
        if not self.index:
            return [self.instruction]
        return [
            user
            for user in self.instruction.users
            if user.opcode is Opcode.GET_TUPLE_ELEMENT and (user.tuple_index,) == self.index
        ]

    def user(self) -> Instruction | None:
        """The only instruction that reads what is at this place, if it does so once."""
        results = self.results()
        if len(results) != 1 or len(results[0].users) != 1:
            return None
        (user,) = results[0].users
        return user if user.operands.count(results[0]) == 1 else None

    def following(self) -> _Link | None:
        """The next operation in place on the same buffer."""
        user = self.user()
        if user is None or user.opcode is not Opcode.CUSTOM_CALL:
            return None
        number = user.operands.index(self.results()[0])
        text = user.attributes.get("output_to_operand_aliasing", "{}")
        for alias in parse_output_to_operand_aliasing(text):
            if (alias.parameter, alias.parameter_index) == (number, ()):
                return _Link(user, alias.output_index)
        return None

    def end(self) -> _Link:
        """The last operation in place; O(length of the chain)."""
        link = self
        while (following := link.following()) is not None:
            link = following
        return link


def _end_of_previous(start: Instruction) -> _Link | None:
    """The end of the chain that the previous trip has begun, if a loop carries this one on."""
    body = start.parent
    if not loops_with_body(body):
        return None
    end = _Link(start, _buffer_index(start)).end()
    user = end.user()
    if user is None or not user.is_root or user.opcode is not Opcode.TUPLE:
        return None
    (result,) = end.results()
    if not result.shape.is_buffer:
        return None
    elements = elements_of_state(body, user.operands.index(result))
    if not elements:
        return None
    previous = _Link(elements[0], ()).end()
    is_independent = not depends_on(previous.instruction, start)
    return previous if is_independent else None


def _buffer_index(instruction: Instruction) -> Index:
    slots = slots_of(instruction.shape)
    pairs = zip(slots.indices, slots.parts, strict=True)
    return next((index for index, part in pairs if part.is_buffer), ())
