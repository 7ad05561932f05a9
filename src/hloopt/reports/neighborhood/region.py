"""A part of a module: the instructions of a computation or of a scope, what they read and give."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir.computation import Computation
from hloopt.ir.find import in_scope
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, CONTROL_FLOW_CALLERS, Opcode

_RUNS_IN_PLACE = ASYNC | {Opcode.FUSION, Opcode.CUSTOM_CALL}
"""Opcodes that run the computation they call once, on whole values."""


@dataclass(frozen=True, slots=True)
class Region:
    """Instructions with what is around them, each in the order of the module."""

    title: str
    count: int
    """The number of instructions, parameters included."""
    home: Computation | None
    """The computation that all of them are in; None where there are several."""
    instructions: list[Instruction]
    reads: list[Instruction]
    """Operands of the instructions that are none of them."""
    gives: list[Instruction]
    """The instructions that others read, and roots."""


def computation_region(computation: Computation) -> Region:
    """All of a computation but its parameters, which it reads. O(operands)."""
    inside = [each for each in computation.instructions if each.opcode is not Opcode.PARAMETER]
    title = f"computation %{computation.name}"
    return _region(title, inside, len(computation), computation)


def scope_region(module: Module, scope: str) -> Region:
    """The instructions whose op_name is in a scope, or is it, without what they call, and without
    what is applied to elements.

    O(instructions). Raises HloError if there is none.
    """
    inside = [each for each in in_scope(module, scope) if not _is_applied(each.parent)]
    homes = {each.parent for each in inside}
    home = homes.pop() if len(homes) == 1 else None
    return _region(f"scope {scope.rstrip('/')}", inside, len(inside), home)


def _is_applied(computation: Computation) -> bool:
    """Whether it is a reducer or comparator, or the like."""
    return any(
        caller.opcode not in CONTROL_FLOW_CALLERS and caller.opcode not in _RUNS_IN_PLACE
        for caller in computation.callers
    )


def _region(title: str, inside: list[Instruction], count: int, home: Computation | None) -> Region:
    own = set(inside)
    reads = list(dict.fromkeys(o for each in inside for o in each.operands if o not in own))
    gives = [i for i in inside if i.is_root or any(user not in own for user in i.users)]
    return Region(title, count, home, inside, reads, gives)
