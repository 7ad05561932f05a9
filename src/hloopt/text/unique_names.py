"""Names made unique over a module that was read, as XLA does."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.names import NameTable


def make_names_unique(module: Module) -> None:
    """Rename what clashes with an earlier name, computations in the order of the text.

    The readers keep computations under the names in the text, and have noted the names of all
    instructions; only where two clash is there anything to do. O(computations), or
    O(instructions). Instructions that are renamed, or refer to such, lose their text.
    """
    _name_computations(module)
    if module.instruction_names.has_clash:
        module.instruction_names = NameTable()
        for computation in module.computations.values():
            _make_unique(computation, module)


def _name_computations(module: Module) -> None:
    joined = " ".join(module.computations)
    names = NameTable()
    names.note(module.computations, joined)
    if not names.has_clash and "{" not in joined:  # braces: those without a name in the text
        module.computation_names = names
        return
    names = module.computation_names = NameTable()
    computations = list(module.computations.values())
    module.computations = {}
    for computation in computations:
        name = names.unique(computation.name)
        module.computations[name] = computation
        if name != computation.name:
            computation.name = name
            _forget_text(computation)


def _forget_text(renamed: Computation) -> None:
    """Drop the texts that have the old name of a computation."""
    if not renamed.is_sugar:  # its text stands in its caller, and has no name
        renamed.is_pristine = False
        for caller in renamed.callers:
            caller.text = None
            caller.parent.is_pristine = False


def _make_unique(computation: Computation, module: Module) -> None:
    names = module.instruction_names
    renamed: set[Instruction] = set()
    for instruction in computation.instructions:
        name = names.unique(instruction.name)
        if name != instruction.name:
            renamed.add(instruction)
            module.read_names[instruction] = instruction.name
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
