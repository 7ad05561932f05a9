"""Questions about the surroundings of an instruction, of which conditions of bugs are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hloopt.ir import Computation, Instruction, Module, Opcode


def above(instruction: Instruction, *opcodes: Opcode) -> Instruction | None:
    """The last of a chain of operands with these opcodes, beginning with one of its operands."""
    if not opcodes:
        return instruction
    for operand in instruction.operands:
        if operand.opcode is opcodes[0]:
            found = above(operand, *opcodes[1:])
            if found is not None:
                return found
    return None


def below(instruction: Instruction, *opcodes: Opcode) -> Instruction | None:
    """The last of a chain of users with these opcodes, beginning with one of its users."""
    if not opcodes:
        return instruction
    for user in instruction.users:
        if user.opcode is opcodes[0]:
            found = below(user, *opcodes[1:])
            if found is not None:
                return found
    return None


def source(instruction: Instruction, *opcodes: Opcode) -> Instruction:
    """The first that has another opcode, up the first operands."""
    while instruction.opcode in opcodes:
        instruction = instruction.operands[0]
    return instruction


def first(computation: Computation, opcode: Opcode) -> Instruction | None:
    """The first instruction of an opcode in a computation."""
    return next((i for i in computation.instructions if i.opcode is opcode), None)


class Loop(NamedTuple):
    """A while loop and its parts."""

    loop: Instruction
    condition: Computation
    body: Computation

    def begins_with(self, index: int) -> Instruction | None:
        """The value of an element of the state before the loop."""
        state = self.loop.operands[0]
        return state.operands[index] if state.opcode is Opcode.TUPLE else None

    def reads(self, index: int) -> list[Instruction]:
        """The instructions that take an element of the state in the body."""
        return _elements(self.body.parameters[0], index)

    def results(self, index: int) -> list[Instruction]:
        """The instructions that take an element of the state after the loop."""
        return _elements(self.loop, index)

    def next_value(self, index: int) -> Instruction | None:
        """The value of an element for the next trip."""
        root = self.body.root
        return root.operands[index] if root.opcode is Opcode.TUPLE else None

    @property
    def size(self) -> int:
        """The number of elements of the state; 0 where it is not a tuple."""
        return len(self.body.root.operands) if self.body.root.opcode is Opcode.TUPLE else 0


def loops(module: Module) -> Iterator[Loop]:
    """All while loops."""
    for loop in module.instructions(Opcode.WHILE):
        parts = dict(loop.called_attributes())
        yield Loop(loop, parts["condition"][0], parts["body"][0])


def _elements(value: Instruction, index: int) -> list[Instruction]:
    return [
        user
        for user in value.users
        if user.opcode is Opcode.GET_TUPLE_ELEMENT and user.tuple_index == index
    ]
