"""Instruction names made unique over a module that was read, as XLA does."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.names import NameTable


def make_names_unique(module: Module) -> None:
    """Rename what clashes with an earlier name, computations in the order of the text.

    The readers have noted all names; only where two clash is there anything to do. O(1), or
    O(instructions). Instructions that are renamed, or refer to such, lose their text.
    """
    if not module.instruction_names.has_clash:
        return
    module.instruction_names = NameTable()
    for computation in module.computations.values():
        _make_unique(computation, module.instruction_names)


def _make_unique(computation: Computation, names: NameTable) -> None:
    renamed: set[Instruction] = set()
    for instruction in computation.instructions:
        name = names.unique(instruction.name)
        if name != instruction.name:
            renamed.add(instruction)
            instruction.name = name
            instruction.text = None
    if not renamed:
        return
    computation.is_pristine = False
    for instruction in computation.instructions:
        if not (
            renamed.isdisjoint(instruction.operands)
            and renamed.isdisjoint(instruction.control_predecessors)
        ):
            instruction.text = None
