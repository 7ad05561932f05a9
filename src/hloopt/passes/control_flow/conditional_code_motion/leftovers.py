"""Collectives that would stay in a branch although they move out of it.

Devices that take different branches would meet in one branch only, and wait for ever.
"""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import COLLECTIVES
from hloopt.ir.ordering import depth_first
from hloopt.passes.control_flow.conditional_code_motion.boundaries import Group


def collective_left_behind(group: Group) -> Instruction | None:
    """A collective of the group that something in its branch still needs; None without one.

    O(edges of what moves), and O(what moves) without collectives.
    """
    if not group.moves_out or not any(b.first.opcode in COLLECTIVES for b in group.moved):
        return None
    for branch in range(len(group.moved[0].instructions)):
        moved = dict.fromkeys(b.instructions[branch] for b in group.moved)
        stay = {b.instructions[branch] for b in group.kept}
        for instruction in _users_first(moved):
            users = instruction.users.keys()
            if not (users <= moved.keys() and stay.isdisjoint(users)):
                stay.add(instruction)
        for instruction in moved:
            if instruction in stay and instruction.opcode in COLLECTIVES:
                return instruction
    return None


def _users_first(instructions: dict[Instruction, None]) -> list[Instruction]:
    return depth_first(instructions, lambda i: [user for user in i.users if user in instructions])
