"""Copies of what the entry takes and gives in one place."""

from __future__ import annotations

from hloopt.analysis.dataflow import slots_of
from hloopt.ir import Module
from hloopt.memory.buffers import entry_aliases
from hloopt.passes.copy_insertion.deep_copy import replace_by_copy, replace_root


def copy_aliased(module: Module) -> None:
    """Copy aliased parts of parameters and of the result, the former before the latter."""
    aliases = entry_aliases(module)
    if not aliases:
        return
    entry = module.entry
    wanted: dict[int, set[int]] = {}
    pairs: list[tuple[int, int, int]] = []
    slots = {p.parameter_number: slots_of(p.shape) for p in entry.parameters}
    for alias in aliases:
        source = slots[alias.parameter].at(alias.parameter_index)
        result = slots_of(entry.root.shape).at(alias.output_index)
        if source is not None and result is not None:
            wanted.setdefault(alias.parameter, set()).add(source)
            pairs.append((alias.parameter, source, result))
    before = {
        p.parameter_number: replace_by_copy(p, wanted[p.parameter_number])
        for p in entry.parameters
        if p.parameter_number in wanted
    }
    after = replace_root(entry, [result for _, _, result in pairs])
    for parameter, source, result in pairs:
        if source in before[parameter] and result in after:
            after[result].add_control_predecessor(before[parameter][source])
