"""Facts about a conditional and what is around it."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.control_flow.conditional_code_motion.boundaries import Boundary, Position


def count_variables(instructions: Iterable[Instruction]) -> int:
    """The number of distinct instructions that are not constants."""
    return len({i for i in instructions if i.opcode is not Opcode.CONSTANT})


class Facts:
    """Answers questions about one conditional, in O(1) once it had to look.

    Right as long as nothing around the conditional changes.
    """

    def __init__(self, conditional: Instruction) -> None:
        self.conditional = conditional
        self.root = conditional.called[0].root
        self.roots = Boundary(Position.INSIDE, tuple([b.root for b in conditional.called]))
        self._user_counts: dict[Instruction, int] = {}
        self._operand_counts: dict[Instruction, int] = {}
        self._operand_numbers: dict[Instruction, dict[Instruction, int]] = {}
        self._readers: dict[int, Instruction] | None = None

    def user_count(self, instruction: Instruction) -> int:
        """The number of users that are not constants."""
        count = self._user_counts.get(instruction)
        if count is None:
            count = self._user_counts[instruction] = count_variables(instruction.users)
        return count

    def operand_count(self, instruction: Instruction) -> int:
        """The number of distinct operands that are not constants."""
        count = self._operand_counts.get(instruction)
        if count is None:
            count = self._operand_counts[instruction] = count_variables(instruction.operands)
        return count

    def dependents(self, boundary: Boundary) -> int:
        """The number of instructions that have to move before the boundary can."""
        if boundary.position is Position.USER:
            return self.operand_count(boundary.first)
        return len(boundary.first.users)

    def operand_number(self, user: Instruction, operand: Instruction) -> int:
        """The first place of an operand among those of a user of it."""
        numbers = self._operand_numbers.get(user)
        if numbers is None:
            numbers = {}
            for number, each in enumerate(user.operands):
                numbers.setdefault(each, number)
            self._operand_numbers[user] = numbers
        return numbers[operand]

    def reader_of_element(self, index: int) -> Instruction | None:
        """The first user of the get-tuple-element of an element of the conditional.

        Of several of that index, the first that has users counts.
        """
        if self._readers is None:
            self._readers = {}
            for user in self.conditional.users:
                if user.opcode is Opcode.GET_TUPLE_ELEMENT and user.users:
                    self._readers.setdefault(user.tuple_index, next(iter(user.users)))
        return self._readers.get(index)
