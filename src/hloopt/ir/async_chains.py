"""Chains of asynchronous instructions: a start, its updates, its done."""

from __future__ import annotations

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC, Opcode

ASYNC_CONTINUES = (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE)
"""Opcodes whose first operand is an asynchronous operation under way."""


def find_async_start(instruction: Instruction) -> Instruction | None:
    """The async-start of the chain that an instruction is part of; None if the chain is broken.

    O(1) per link of a chain as long as its computation stays the same, else O(length of the chain).
    """
    if instruction.opcode not in ASYNC_CONTINUES:
        return instruction if instruction.opcode is Opcode.ASYNC_START else None
    computation = instruction.parent
    version, known = computation.async_starts
    if version != computation.version:
        known = {}
        computation.async_starts = computation.version, known
    path: dict[Instruction, None] = {}
    while instruction.opcode in ASYNC_CONTINUES and instruction.operands:
        if instruction in known:
            instruction = known[instruction]
            break
        if instruction in path:
            return None
        path[instruction] = None
        instruction = instruction.operands[0]
    if instruction.opcode is not Opcode.ASYNC_START:
        return None
    known.update(dict.fromkeys(path, instruction))
    return instruction


def async_start_of(instruction: Instruction) -> Instruction:
    """The async-start of the chain that an instruction is part of; as fast as `find_async_start`.

    Raises HloVerifyError if there is none, or if it calls no computation.
    """
    start = find_async_start(instruction)
    if start is None or not start.called:
        raise HloVerifyError(
            f"'%{instruction.name}' belongs to no async-start that calls a computation",
            span=instruction.parent.module.span_of(instruction),
        )
    return start


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


def bound_operands(step: Instruction) -> list[Instruction]:
    """The operands of the wrapped computation that a step and those before it in its chain bind.

    In the order of the parameters; the last step of a valid chain binds the last ones.
    O(operands of the chain).
    """
    late: list[Instruction] = []
    while step.opcode in ASYNC_CONTINUES:
        late += reversed(step.operands[1:])
        step = step.operands[0]
    return [*step.operands, *reversed(late)]


def all_bound_operands(start: Instruction) -> list[Instruction]:
    """The operands of the wrapped computation that an async-start and all its followers bind.

    In the order of the parameters. O(operands and users of the chain).
    """
    return bound_operands([start, *async_followers(start)][-1])


def is_alone(operation: Instruction) -> bool:
    """Whether a root has only parameters beside it, so that XLA prints what wraps it as `X-start`.

    O(instructions of its computation).
    """
    if operation.opcode is Opcode.PARAMETER or operation.opcode in ASYNC:
        return False
    members = operation.parent.instructions
    return all(i is operation or i.opcode is Opcode.PARAMETER for i in members)
