"""Combining the collectives that somebody names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.diagnostics import did_you_mean
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.ordering import repair_schedule, stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, PassOptions, option, register
from hloopt.passes.collectives.collective_combiner.combination import combine
from hloopt.passes.collectives.collective_combiner.domains import domain_numbers
from hloopt.passes.collectives.collective_combiner.grouping import Limits, group
from hloopt.passes.collectives.collective_combiner.passes import (
    AllGatherCombiner,
    AllReduceCombiner,
    ReduceScatterCombiner,
)

_COMBINERS = {
    combiner.opcode: combiner(combiner.Options(combine_threshold_in_bytes=sys.maxsize))
    for combiner in (AllGatherCombiner, AllReduceCombiner, ReduceScatterCombiner)
}
"""The combiner that tells, for each kind of collective, what can be combined."""


@register("combine-collectives", preserves="bits")
class CombineCollectives(ModulePass):
    """Combine the all-gathers, all-reduces and reduce-scatters of each group into one collective.

    A group names at least two collectives of one computation. They agree in all that their combiner
    asks for (`all-gather-combiner` and so on), but in any size, and do not depend on each other; a
    group that cannot be combined as a whole stays as it is. Groups are combined in their order:
    what one made dependent is dependent for the next. The combined collective has the attributes of
    the group's first member. XLA has no such pass. O(edges of the computation) per group.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        groups: tuple[tuple[str, ...], ...] = option(
            (), "names of collectives to combine, a list for each combined one"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        wanted = {name.removeprefix("%") for names in self.options.groups for name in names}
        by_name = {i.name: i for i in module.instructions() if i.name in wanted}
        changed = False
        for names in self.options.groups:
            members = _members(names, by_name, module, context)
            if not members:
                continue
            if reason := self.why_not(members):
                for member in members:
                    context.missed(member, reason)
                continue
            if not context.apply(members[0], f"combined with {_named(members[1:])}", remark=False):
                break
            combined = combine(members)
            changed = True
            for member in members:
                del by_name[member.name]
                context.applied(member, f"one of {len(members)} combined into %{combined.name}")
            context.count("collectives combined", len(members))
            repair_schedule([combined.parent])
        return changed

    def why_not(self, members: Sequence[Instruction]) -> str | None:
        """The reason why a group is not combined; None where it can be. O(edges)."""
        first = members[0]
        if len(members) < 2:
            return "its group has no other collective"
        for member in members:
            if member.opcode not in _COMBINERS:
                return f"%{member.name} is not an all-gather, all-reduce or reduce-scatter"
            if member.parent is not first.parent:
                return f"%{member.name} is in another computation than %{first.name}"
            if member.parent.is_asynchronous:
                return f"%{member.name} is wrapped by an async-start"
            if constrains_layout(member):
                return f"%{member.name} constrains its layout"
            if reason := _COMBINERS[member.opcode].why_not(member):
                return f"%{member.name} cannot be combined: {reason}"
        domains = domain_numbers(first.parent)
        for member in members[1:]:
            is_alike = member.opcode is first.opcode and (
                _COMBINERS[first.opcode].kind(member) == _COMBINERS[first.opcode].kind(first)
            )
            if not is_alike or domains.get(member) != domains.get(first):
                return f"%{member.name} and %{first.name} differ in more than operand and shape"
        limits = Limits(sys.maxsize, len(members))
        found = group(stable_order(first.parent), dict.fromkeys(members, 0), limits)
        if len(found) > 1:
            return f"%{found[1].members[0].name} depends on another collective of the group"
        return None


def _members(
    names: Sequence[str], by_name: dict[str, Instruction], module: Module, context: PassContext
) -> list[Instruction]:
    """The collectives that a group names; none of them where a name is not found."""
    stated = dict.fromkeys(name.removeprefix("%") for name in names)
    missing = [name for name in stated if name not in by_name]
    for name in missing:
        help = did_you_mean(name, [i.name for i in module.instructions() if i.opcode in _COMBINERS])
        context.note(f"no collective has the name %{name}" + (f"; {help}" if help else ""))
    return [] if missing else [by_name[name] for name in stated]


def _named(members: Sequence[Instruction]) -> str:
    return ", ".join(f"%{member.name}" for member in members)
