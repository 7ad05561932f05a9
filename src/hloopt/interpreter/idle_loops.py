"""Loops that need not run: what is read of them is what they are given.

XLA takes loops to end and removes such a loop, so that one that never ends has a result, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hloopt.interpreter.effects import has_effect
from hloopt.interpreter.kernels import kernels
from hloopt.ir.callers import with_callers
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.loop_state import is_handed_on
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode


def is_idle(loop: Instruction, busy: Collection[Computation]) -> bool:
    """Whether a while loop hands on, unchanged, each element of its state that is read.

    `busy` are the computations that do more than compute. O(users + elements).
    """
    return not any(called in busy for called in loop.called) and all(
        is_handed_on(loop, index) for index in _elements_read(loop)
    )


def _elements_read(loop: Instruction) -> Iterable[int]:
    """The elements of the state that are read; one, of a state that is no tuple."""
    every = range(len(loop.shape.elements) if loop.shape.is_tuple else 1)
    if loop.is_root:
        return every
    read = set()
    for user in loop.users:
        if user.opcode is not Opcode.GET_TUPLE_ELEMENT:
            return every
        if user.users or user.is_root:
            read.add(user.tuple_index)
    return read


def busy_computations(module: Module) -> set[Computation]:
    """The computations that have effects or need other devices, or call one. O(instructions)."""
    return with_callers(
        computation
        for computation in module.computations.values()
        if any(map(_is_busy, computation.instructions))
    )


def _is_busy(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    return has_effect(instruction) or (opcode not in _ALONE and opcode not in kernels())


_ALONE = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.PARTITION_ID, Opcode.REPLICA_ID),
        *(Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL, Opcode.FUSION),
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
    )
)
"""Opcodes without kernels of which a device runs each alone, with the computations it calls."""
