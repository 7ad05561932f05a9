"""Copies of what the entry takes and gives in one place."""

from __future__ import annotations

from hloopt.analysis.dataflow import slots_of
from hloopt.ir import Module
from hloopt.memory.buffers import entry_aliases
from hloopt.passes.copy_insertion.deep_copy import deep_copy, replace_by_copy


def copy_aliased(module: Module) -> None:
    """Copy aliased parts of parameters and of the result, the former before the latter."""
    aliases = entry_aliases(module)
    if not aliases:
        return
    entry = module.entry
    root = entry.root
    wanted: dict[int, set[int]] = {}
    pairs: list[tuple[int, int, int]] = []
    slots = {p.parameter_number: slots_of(p.shape) for p in entry.parameters}
    for alias in aliases:
        source = slots[alias.parameter].at(alias.parameter_index)
        result = slots_of(root.shape).at(alias.output_index)
        if source is not None and result is not None:
            wanted.setdefault(alias.parameter, set()).add(source)
            pairs.append((alias.parameter, source, result))
    before = {
        p.parameter_number: replace_by_copy(p, wanted[p.parameter_number])
        for p in entry.parameters
        if p.parameter_number in wanted
    }
    result_copy, after = deep_copy(entry.root, [result for _, _, result in pairs])
    entry.set_root(result_copy)
    for parameter, source, result in pairs:
        if source in before[parameter] and result in after:
            after[result].add_control_predecessor(before[parameter][source])
