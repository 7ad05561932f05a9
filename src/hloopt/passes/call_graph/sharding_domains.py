"""Domains: marks between instructions with different shardings."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


def isolate(instruction: Instruction) -> None:
    """Put a domain on each edge of the instruction between two different shardings. O(edges)."""
    for number, operand in enumerate(instruction.operands):
        _separate(operand, instruction, number)
    for user in list(instruction.users):
        for number, operand in enumerate(user.operands):
            if operand is instruction:
                _separate(instruction, user, number)


def _separate(source: Instruction, user: Instruction, number: int) -> None:
    if Opcode.DOMAIN in (source.opcode, user.opcode):
        return
    before, after = source.attributes.get("sharding"), user.attributes.get("sharding")
    if before is None or after is None or before == after:
        return
    domain = f'{{kind="sharding", entry={after}, exit={before}}}'
    mark = source.parent.add(Opcode.DOMAIN, source.shape, [source], attributes={"domain": domain})
    user.replace_operand(number, mark)
