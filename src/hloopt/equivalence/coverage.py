"""What a comparison did not see: branches and loop bodies that no input led into."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hloopt.equivalence.signature import place_text
from hloopt.ir.computation import Computation
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode


def not_run(program: Module, module: Module, ran: Collection[Computation]) -> Iterator[str]:
    """The branches and bodies of `program` that never ran; places are those of `module`."""
    for caller in program.instructions():
        if caller.parent not in ran or caller.opcode not in (Opcode.CONDITIONAL, Opcode.WHILE):
            continue
        place = place_text(module, caller)
        if caller.opcode is Opcode.WHILE:
            if caller.called[0] not in ran:
                yield f"the body of loop %{caller.name}{place} never ran"
            continue
        for number, branch in enumerate(caller.called):
            if branch not in ran:
                yield f"branch {number} (%{branch.name}) of %{caller.name}{place} never ran"
