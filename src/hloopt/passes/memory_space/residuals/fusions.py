"""Reads and writes of stacks inside of fusions."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.memory_space.residuals.stacks import Access


def fused_reads(fusion: Instruction, operand: int) -> list[Access] | None:
    """The slices that a fusion takes of an operand; None where it takes more. O(uses in it)."""
    (body,) = fusion.called
    parameter = body.parameters[operand]
    if parameter.is_root or len(body.callers) > 1:
        return None
    for user in parameter.users:
        if user.opcode is not Opcode.DYNAMIC_SLICE or parameter in user.operands[1:]:
            return None
    return [Access(user, fusion, user) for user in parameter.users]


def fused_write(fusion: Instruction, operand: int, loop: Instruction | None) -> Access | None:
    """The update that is all that a fusion does with an operand, and gives out; None without one.

    O(users).
    """
    (body,) = fusion.called
    parameter = body.parameters[operand]
    if len(parameter.users) != 1 or parameter.is_root or len(body.callers) > 1:
        return None
    (update,) = parameter.users
    is_updated = update.operands[0] is parameter and parameter not in update.operands[1:]
    if update.opcode is not Opcode.DYNAMIC_UPDATE_SLICE or not is_updated:
        return None
    if "output_to_operand_aliasing" in fusion.attributes:
        return None
    if update is body.root:
        return None if update.users else Access(update, fusion, fusion, loop)
    if list(update.users) != [body.root] or body.root.opcode is not Opcode.TUPLE:
        return None
    numbers = [n for n, given in enumerate(body.root.operands) if given is update]
    readers = [u for u in fusion.users if u.attribute("index") == str(numbers[0])]
    if len(numbers) != 1 or len(readers) != 1:
        return None
    return Access(update, fusion, readers[0], loop)
