"""Copies of what the entry takes and gives in one place."""

from __future__ import annotations

from hloopt.analysis.dataflow import slots_of
from hloopt.ir import Instruction, Module
from hloopt.memory.buffers import entry_aliases
from hloopt.passes.copy_insertion.deep_copy import replace_by_copy, replace_root


def copy_aliased(module: Module) -> None:
    """Copy aliased parts of parameters and of the result, the former before the latter."""
    aliases = entry_aliases(module)
    if not aliases:
        return
    entry = module.entry
    parameters = {parameter.parameter_number: parameter for parameter in entry.parameters}
    wanted: dict[Instruction, set[int]] = {}
    pairs: list[tuple[Instruction, int, int]] = []
    for alias in aliases:
        parameter = parameters.get(alias.parameter)
        if parameter is None:
            continue  # no part of a module that is valid
        source = slots_of(parameter.shape).at(alias.parameter_index)
        result = slots_of(entry.root.shape).at(alias.output_index)
        if source is not None and result is not None:
            wanted.setdefault(parameter, set()).add(source)
            pairs.append((parameter, source, result))
    before = {parameter: replace_by_copy(parameter, slots) for parameter, slots in wanted.items()}
    after = replace_root(entry, [result for _, _, result in pairs])
    for parameter, source, result in pairs:
        if source in before[parameter] and result in after:
            after[result].add_control_predecessor(before[parameter][source])
