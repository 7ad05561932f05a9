"""Rewriting: users of a conditional move into its branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.diagnostics import counted
from hloopt.ir.clone import own_computations
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import element
from hloopt.passes.control_flow.conditional_code_motion.boundaries import Group, Position
from hloopt.passes.control_flow.conditional_code_motion.results import set_results
from hloopt.passes.rewriting.replace import hand_value_on, remove_unused


@dataclass(slots=True, eq=False)
class _Result:
    """One result of the conditional: what each branch gives, and who reads it behind."""

    values: list[Instruction]
    readers: list[Instruction]
    is_kept: bool = True


def why_no_users(conditional: Instruction) -> str | None:
    """The reason why users of a conditional cannot move in, or None where they can."""
    if conditional.is_root:
        return f"its result is that of %{conditional.parent.name}"
    if not conditional.shape.is_tuple and len(conditional.users) > 1:
        return f"it gives an array to {counted(len(conditional.users), 'user')}"
    return None


def move_users_in(conditional: Instruction, groups: Sequence[Group]) -> None:
    """Move groups of users into the branches, which nothing else runs.

    O(operands x branches of what moves + results x branches).
    """
    of_users = [group for group in groups if group.position is Position.USER]
    if of_users:
        motion = _UsersIn(conditional)
        for group in of_users:
            motion.move([boundary.first for boundary in group.moved])
        motion.finish()


class _UsersIn:
    def __init__(self, conditional: Instruction) -> None:
        self._conditional = conditional
        self._branches = conditional.called
        self._inside: dict[Instruction, list[Instruction]] = {}
        """For instructions behind the conditional, what stands for them in each branch."""
        self._results: list[_Result] = []
        self._moved: list[Instruction] = []
        roots = [branch.root for branch in self._branches]
        if not conditional.shape.is_tuple:
            self._inside[conditional] = roots
            return
        self._results = [
            _Result([element(root, index) for root in roots], [])
            for index in range(len(conditional.shape.elements))
        ]
        for reader in conditional.users:
            result = self._results[reader.tuple_index]
            result.readers.append(reader)
            self._inside[reader] = result.values

    def move(self, group: list[Instruction]) -> None:
        """Move one group, which begins with a reader of the conditional."""
        first, *operations = group
        if self._conditional.shape.is_tuple:
            result = self._results[first.tuple_index]
            result.is_kept = len(result.readers) > 1 or len(first.users) > 1 or first.is_root
        else:
            operations = group
        following = [*operations[1:], None]
        for operation, next_one in zip(operations, following, strict=True):
            self._inside[operation] = self._copies(operation)
            if operation.is_root or list(operation.users) != [next_one]:
                self._read_behind(operation)
        self._moved += group

    def _copies(self, operation: Instruction) -> list[Instruction]:
        operands = [self._operand(operand) for operand in operation.operands]
        copies = []
        for number, branch in enumerate(self._branches):
            copy = branch.add_clone(operation, [values[number] for values in operands])
            own_computations(copy, loops=True)
            copies.append(copy)
        return copies

    def _operand(self, operand: Instruction) -> list[Instruction]:
        """An operand in each branch: constants are copied there."""
        if operand not in self._inside:
            assert operand.opcode is Opcode.CONSTANT, f"{operand!r} does not move"
            self._inside[operand] = [branch.add_clone(operand, ()) for branch in self._branches]
        return self._inside[operand]

    def _read_behind(self, operation: Instruction) -> None:
        """Let the branches give what an operation gives, and its users read that."""
        reader = self._conditional.parent.add(
            Opcode.GET_TUPLE_ELEMENT, operation.shape, [self._conditional]
        )
        hand_value_on(operation, reader)
        self._inside[reader] = self._inside[operation]
        self._results.append(_Result(self._inside[operation], [reader]))

    def finish(self) -> None:
        """Give the branches their new roots, remove what moved, and number the readers."""
        old_roots = [branch.root for branch in self._branches]
        remove_unused(self._moved[::-1])
        results = [result for result in self._results if result.is_kept]
        set_results(self._conditional, [result.values for result in results])
        remove_unused(old_roots)
        for index, result in enumerate(results):
            for reader in result.readers:
                if reader in reader.parent:
                    reader.set_attribute("index", str(index))
