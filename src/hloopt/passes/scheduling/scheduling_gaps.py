"""Paths between the members of a scheduling group, and between groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import dependencies, stable_order


class Paths:
    """The order in one computation by operands and control dependencies.

    `skip_opt_barriers`: an opt-barrier ends a path, and a tuple leads only to those that take out
    of it what was put in.
    """

    def __init__(self, computation: Computation, *, skip_opt_barriers: bool = False) -> None:
        self.order = stable_order(computation)
        self._position = {instruction: n for n, instruction in enumerate(self.order)}
        self._skips = skip_opt_barriers

    def successors(self, instruction: Instruction) -> list[Instruction]:
        """The direct successors of an instruction. O(users)."""
        users: list[Instruction] = []
        for user in instruction.users:
            if not self._skips:
                users.append(user)
            elif user.opcode is Opcode.TUPLE and self._is_taken_apart(user):
                users += _readers(user, instruction)
            elif user.opcode is not Opcode.OPT_BARRIER:
                users.append(user)
        return [*users, *instruction.control_successors]

    @staticmethod
    def _is_taken_apart(value: Instruction) -> bool:
        return len(value.users) > 1 or any(u.opcode is Opcode.OPT_BARRIER for u in value.users)

    def between(self, members: Iterable[Instruction]) -> dict[Instruction, None]:
        """The instructions on paths between members that are not members, in order.

        O(edges between the first and the last member).
        """
        inside = set(members)
        last = max(self._position[member] for member in inside)
        after: set[Instruction] = set()
        stack = list(inside)
        while stack:
            for successor in self.successors(stack.pop()):
                if successor not in after and self._position[successor] <= last:
                    after.add(successor)
                    stack.append(successor)
        leads_back: set[Instruction] = set()
        for instruction in sorted(after - inside, key=self._position.__getitem__, reverse=True):
            if any(s in inside or s in leads_back for s in self.successors(instruction)):
                leads_back.add(instruction)
        return dict.fromkeys(sorted(leads_back, key=self._position.__getitem__))

    def mutual_groups(self, groups: Mapping[Instruction, int]) -> tuple[int, int] | None:
        """Two groups of which each has members before members of the other; None without.

        O(edges · groups / 64).
        """
        bits = {group: 1 << n for n, group in enumerate(dict.fromkeys(groups.values()))}
        before: dict[Instruction, int] = {}
        reached_from = dict.fromkeys(bits, 0)
        for instruction in self.order:
            mask = 0
            for source in dependencies(instruction):
                mask |= before[source]
            if instruction in groups:
                group = groups[instruction]
                reached_from[group] |= mask
                mask |= bits[group]
            before[instruction] = mask
        for group, mask in reached_from.items():
            for other, bit in bits.items():
                if other != group and mask & bit and reached_from[other] & bits[group]:
                    return group, other
        return None


def _readers(value: Instruction, element: Instruction) -> list[Instruction]:
    """The get-tuple-elements that take `element` out of a tuple."""
    return [
        user
        for user in value.users
        if user.opcode is Opcode.GET_TUPLE_ELEMENT and value.operands[user.tuple_index] is element
    ]
