"""Chains of asynchronous instructions: a start, its updates, its done."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

ASYNC_CONTINUES = (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE)
"""Opcodes whose first operand is an asynchronous operation under way."""


def find_async_start(instruction: Instruction) -> Instruction | None:
    """The async-start that an asynchronous instruction belongs to; None where there is none.

    O(length of the chain).
    """
    while instruction.opcode in ASYNC_CONTINUES and instruction.operands:
        instruction = instruction.operands[0]
    return instruction if instruction.opcode is Opcode.ASYNC_START else None


def async_followers(start: Instruction) -> list[Instruction]:
    """The updates and dones of an async-start, in the order of the chain. O(their users)."""
    found: list[Instruction] = []
    stack = [start]
    while stack:
        step = stack.pop()
        if step is not start:
            found.append(step)
        stack += reversed(
            [u for u in step.users if u.opcode in ASYNC_CONTINUES and u.operands[0] is step]
        )
    return found


def bound_operands(start: Instruction) -> list[Instruction]:
    """What an async-start and all that follow it bind: the operands of what it runs, in order.

    O(users of the chain).
    """
    operands = list(start.operands)
    for step in async_followers(start):
        operands += step.operands[1:]
    return operands
