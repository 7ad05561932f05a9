"""The parts into which domain instructions divide a computation."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


def domain_numbers(computation: Computation) -> dict[Instruction, int]:
    """The number of the part that each instruction is in; empty without domain instructions.

    Instructions are in one part if edges connect them that no domain lies on. O(edges).
    """
    numbers: dict[Instruction, int] = {}
    if all(each.opcode is not Opcode.DOMAIN for each in computation.instructions):
        return numbers
    for number, first in enumerate(computation.instructions):
        stack = [first]
        while stack:
            found = stack.pop()
            if found in numbers or found.opcode is Opcode.DOMAIN:
                continue
            numbers[found] = number
            stack += [*found.operands, *found.users]
    return numbers
