"""A part of a module: the instructions of a computation or of a scope, what they read and give."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir.computation import Computation
from hloopt.ir.find import in_scope
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode


@dataclass(frozen=True, slots=True)
class Region:
    """Instructions with what is around them, each in the order of the module."""

    title: str
    instructions: list[Instruction]
    reads: list[Instruction]
    """Operands of the instructions that are none of them."""
    gives: list[Instruction]
    """The instructions that others read, and roots."""


def computation_region(computation: Computation) -> Region:
    """All of a computation but its parameters, which it reads. O(operands)."""
    inside = [each for each in computation.instructions if each.opcode is not Opcode.PARAMETER]
    return _region(f"computation %{computation.name}", inside)


def scope_region(module: Module, scope: str) -> Region:
    """The instructions whose op_name is in a scope, or is it, without what they call.

    O(instructions). Raises HloError if there is none.
    """
    return _region(f"scope {scope.rstrip('/')}", in_scope(module, scope))


def _region(title: str, inside: list[Instruction]) -> Region:
    own = set(inside)
    reads = list(dict.fromkeys(o for each in inside for o in each.operands if o not in own))
    gives = [i for i in inside if i.is_root or any(user not in own for user in i.users)]
    return Region(title, inside, reads, gives)
