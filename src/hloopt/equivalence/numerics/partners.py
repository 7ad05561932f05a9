"""The instructions of two modules whose values are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from hloopt.analysis.matching import ModuleMatch
from hloopt.equivalence.coverage import CALLERS
from hloopt.equivalence.numerics.op_names import OpNames
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode

_Partners: TypeAlias = Mapping[Instruction, Instruction]
_Key: TypeAlias = tuple[Opcode, str, tuple[int, ...]]


def partners_of(before: Module, after: Module) -> dict[Instruction, Instruction]:
    """The instructions that belong together: as `ModuleMatch` pairs them; of the others, those that
    are the only ones of an opcode, op_name and sizes in both modules.

    The latter find each other where one module has inlined or fused what the other has not.
    O(n log n) in the instructions.
    """
    names = OpNames()
    matched = ModuleMatch.of(before, after).instructions
    found = {old: new for old, new in matched.items() if _get_the_same(old, new, matched)}
    ours = _only_ones(before, found, names)
    theirs = _only_ones(after, {new: old for old, new in found.items()}, names)
    for key, instruction in ours.items():
        other = theirs.get(key)
        if instruction is not None and other is not None:
            found[instruction] = other
    return found


def _get_the_same(old: Instruction, new: Instruction, matched: _Partners) -> bool:
    """Whether two parameters are handed values that belong together; True of what is none.

    Computations may be alike that are called by others.
    """
    if old.opcode is not Opcode.PARAMETER or old.parent.is_entry:
        return True
    callers = [matched.get(caller) for caller in old.parent.callers]
    return callers == list(new.parent.callers)


def _only_ones(module: Module, known: _Partners, names: OpNames) -> dict[_Key, Instruction | None]:
    """Instructions that are not `known`, by key; None where there are several."""
    found: dict[_Key, Instruction | None] = {}
    for instruction in _run_as_a_whole(module):
        op_name = names.of(instruction)
        if op_name and instruction.shape.is_array and instruction.opcode is not Opcode.PARAMETER:
            key = instruction.opcode, op_name, instruction.shape.dimensions
            is_only = key not in found and instruction not in known
            found[key] = instruction if is_only else None
    return found


def _run_as_a_whole(module: Module) -> Iterator[Instruction]:
    for computation in module.computations.values():
        if _is_run(computation):
            yield from computation.instructions


def _is_run(computation: Computation) -> bool:
    return all(caller.opcode in CALLERS for caller in computation.callers)
