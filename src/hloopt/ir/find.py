"""Finding instructions by what people type."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.diagnostics import HloError, did_you_mean
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module


def find_instructions(module: Module, names: Iterable[str]) -> list[Instruction]:
    """The instructions of these names, `%` or not, each once, in the order of the names.

    O(instructions). Raises HloError for a name that no instruction has.
    """
    by_name = {instruction.name: instruction for instruction in module.instructions()}
    found: dict[Instruction, None] = {}
    for given in names:
        name = given.removeprefix("%")
        if name not in by_name:
            if name in module.computations:
                raise HloError(f"'{name}' is a computation: name an instruction")
            raise HloError(f"no instruction '{name}'", help=did_you_mean(name, by_name))
        found[by_name[name]] = None
    return list(found)
