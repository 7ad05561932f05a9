"""Branches, loop bodies and calls that no input of a comparison led into."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hloopt.equivalence.signature import place_text
from hloopt.ir.computation import Computation
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode


def not_run(program: Module, module: Module, ran: Collection[Computation]) -> Iterator[str]:
    """The branches, bodies and callees of `program` that never ran, the outermost of those nested.

    Places are those of `module`. What is applied to elements, as a reduce does, is not a call.
    """
    for caller in program.instructions():
        if caller.parent not in ran or caller.opcode not in CALLERS:
            continue
        place = place_text(module, caller)
        if caller.opcode is Opcode.WHILE:
            if caller.called[0] not in ran:
                yield f"the body of loop %{caller.name}{place} never ran"
            continue
        for number, callee in enumerate(caller.called):
            if callee in ran:
                continue
            if caller.opcode is Opcode.CONDITIONAL:
                yield f"branch {number} (%{callee.name}) of %{caller.name}{place} never ran"
            else:
                yield f"%{callee.name}, which %{caller.name}{place} calls, never ran"


CALLERS = frozenset(
    (
        *(Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL, Opcode.FUSION, Opcode.ASYNC_START),
        Opcode.CUSTOM_CALL,
    )
)
"""Opcodes that run computations as a whole, and not element by element."""
