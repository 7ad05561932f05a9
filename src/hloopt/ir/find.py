"""Finding instructions by what people type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hloopt.diagnostics import HloError, did_you_mean
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.sources.source_stacks import op_name_of


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


def called_in_text(module: Module, name: str) -> Iterator[Instruction]:
    """The instructions that have a name, or had it in the text before names were made unique.

    O(instructions).
    """
    read_names = module.read_names
    return (i for i in module.instructions() if name in (i.name, read_names.get(i)))


def in_scope(module: Module, scope: str) -> list[Instruction]:
    """The instructions whose op_name is in a scope, or is it. Raises HloError where none is."""
    prefix = scope.rstrip("/")
    found = [
        i
        for i in (module.instructions() if prefix else ())
        if (name := op_name_of(i)) == prefix or name.startswith(f"{prefix}/")
    ]
    outer = {i.parent for i in found}
    inner = [i for i in found if not _is_inside(i.parent, outer)]
    if not inner:
        names = {op_name_of(i) for i in module.instructions()} - {""}
        scopes = {
            "/".join(parts[:n])
            for parts in (name.split("/") for name in names)
            for n in range(1, len(parts) + 1)
        }
        known = "give op_names from their first part on, such as 'jit(f)/layers'"
        hint = did_you_mean(prefix, sorted(scopes)) or known
        raise HloError(f"no instruction has an op_name in '{scope}'", help=hint)
    return inner


def _is_inside(computation: Computation, others: set[Computation]) -> bool:
    """Whether instructions of other computations, which are taken anyway, call this one."""
    return any(caller.parent in others for caller in computation.callers)
