"""Give short names, and print as XLA does."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar

from hloopt.ir.module import Module
from hloopt.ir.names import NameTable
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession

_MODULE = "reduced"


class ShortNames:
    """Name instructions by their opcodes, and computations by their callers' attributes."""

    what: ClassVar[Count] = Count("time with short names", "times with short names")
    one_by_one: ClassVar[bool] = True

    def parts(self, module: Module) -> Sequence[Hashable]:
        """All names at once, else those of instructions."""
        return ("all", "instructions")

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Rename. O(module)."""
        module = session.module
        table = NameTable()
        for instruction in module.instructions():
            instruction.name = table.unique(_short(instruction.opcode.value))
            instruction.changed()
        module.instruction_names = table
        if "all" in parts:
            _rename_computations(module)
            module.name = _MODULE
            module.header_text = None


def _short(opcode: str) -> str:
    return _SHORT.get(opcode, opcode)


_SHORT = {"parameter": "p", "constant": "c", "get-tuple-element": "gte"}


def _rename_computations(module: Module) -> None:
    roles = {module.entry: "main"}
    for instruction in module.instructions():
        for name, called in instruction.called_attributes():
            for computation in called:
                roles.setdefault(computation, _ROLES.get(name, name))
    table = NameTable()
    computations = list(module.computations.values())
    for computation in computations:
        computation.name = table.unique(roles.get(computation, "unused"))
        computation.changed()
    module.computation_names = table
    module.computations = {computation.name: computation for computation in computations}


_ROLES = {
    "to_apply": "apply",
    "calls": "fused",
    "branch_computations": "branch",
    "true_computation": "on_true",
    "false_computation": "on_false",
    "called_computations": "called",
}
