"""Plans to shrink modules together, so that what computed the same still does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hloopt.collector import collector_paused
from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import slices_of
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.shrink.errors import first_problem, not_too_deep
from hloopt.shrink.factors import Factor, Rest, leaves, relate_rests, size_of
from hloopt.shrink.flow import Flow, Relation
from hloopt.shrink.new_sizes import NewSizes
from hloopt.shrink.relations import RELATIONS
from hloopt.shrink.rewrite import resized_module
from hloopt.shrink.sizes import Work, choose_sizes

BUDGET = 1_000_000
"""Elements that a run computes in a few seconds."""
_MOST_REASONS = 5
_MOST_PLACES = 3


@dataclass(frozen=True)
class ShrinkPlan:
    """New sizes for the dimensions of some modules."""

    flows: tuple[Flow, ...]
    sizes: dict[Factor, int]
    """By factor that shrinks, its new size."""
    before: tuple[int, ...]
    """By module, the elements it computes."""
    after: tuple[int, ...]

    @not_too_deep()
    def apply(self, module: Module) -> Module:
        """A smaller copy of one of the modules. O(instructions).

        Raises RunError (HLO507) if it does not verify.
        """
        flow = next(flow for flow in self.flows if flow.module is module)
        with collector_paused():
            shrunk = resized_module(flow, NewSizes(self.sizes))
        invalid = first_problem(shrunk)
        if invalid is not None:
            raise first_problem(module) or invalid
        return shrunk

    def describe(self) -> list[str]:
        """The dimensions that get smaller, and those that stay and why, for people; largest
        first."""
        lines = [_change(before, after) for before, after in self._totals()]
        lines += self._what_shrinks()
        lines += self._what_stays()
        return lines

    def _totals(self) -> Iterator[tuple[int, int]]:
        return zip(self.before, self.after, strict=True)

    def _what_shrinks(self) -> Iterator[str]:
        places: dict[tuple[int, int], list[str]] = {}
        for name, dimension, factor in _entry_dimensions(self.flows[0]):
            old, new = factor.size, size_of((factor,), self.sizes)
            if old != new:
                places.setdefault((old, new), []).append(f"%{name} dimension {dimension}")
        for (old, new), found in sorted(places.items(), reverse=True):
            more = f", and {len(found) - _MOST_PLACES} more" if len(found) > _MOST_PLACES else ""
            yield f"{old:,} → {new:,}: {', '.join(found[:_MOST_PLACES])}{more}"

    def _what_stays(self) -> Iterator[str]:
        largest = max(self.sizes.values(), default=0)
        kept: dict[str, int] = {}
        for flow in self.flows:
            for _, _, factor in _entry_dimensions(flow):
                for leaf in leaves([factor]):
                    if leaf.reason and leaf.size > largest:
                        kept[leaf.reason] = max(leaf.size, kept.get(leaf.reason, 0))
        ordered = sorted(kept.items(), key=lambda item: (-item[1], item[0]))
        for reason, size in ordered[:_MOST_REASONS]:
            yield f"{size:,} stays: {reason}"
        if len(ordered) > _MOST_REASONS:
            yield f"{counted(len(ordered) - _MOST_REASONS, 'more size stays', 'more sizes stay')}"


@not_too_deep()
def plan_shrink(
    modules: Sequence[Module],
    budget: int = BUDGET,
    relations: Mapping[Opcode, Relation] = RELATIONS,
) -> ShrinkPlan:
    """The plan that makes modules small enough to run, each computing at most `budget` elements.

    Modules get one plan: those that compute the same from the same parameters still do when they
    are shrunk, and still have parameters and results of equal shapes. That is so because a size
    only changes where everything it is part of goes along, and stays where a value could depend on
    it; `relations` says, by opcode, how dimensions go along. O(leaves of shapes) and some passes
    over the distinct shapes. Raises RunError (HLO507) for what is malformed, or not followed.
    """
    with collector_paused():
        flows = tuple(Flow(module, relations) for module in modules)
    for flow in flows[1:]:
        _relate_entries(flows[0], flow)
    rests = [rest for flow in flows for rest in flow.rests]
    relate_rests(rests)
    for flow in flows:
        _settle(flow)
    following = relate_rests(rests)
    free = _free_factors(flows, following)
    works = [Work(flow) for flow in flows]
    sizes = choose_sizes(works, free, following, budget)
    before, after = (tuple(work.elements(chosen) for work in works) for chosen in ({}, sizes))
    return ShrinkPlan(flows, sizes, before, after)


def _relate_entries(first: Flow, other: Flow) -> None:
    """Parameters and results of two modules are the same, by number and shape index."""
    entries = first.module.entry, other.module.entry
    pairs = [*zip(*(entry.parameters for entry in entries), strict=False)]
    pairs.append((entries[0].root, entries[1].root))
    for mine, theirs in pairs:
        left, right = first.values[mine], other.values[theirs]
        if [len(leaf) for leaf in left] == [len(leaf) for leaf in right]:
            first.join(left, right, mine, "the other module")
        else:
            reason = "it has another rank in the other module"
            for flow, leaves_, one in ((first, left, mine), (other, right, theirs)):
                flow.stay([f for leaf in leaves_ for f in leaf], one, reason)


def _free_factors(flows: Sequence[Flow], following: Mapping[Factor, Rest]) -> list[Factor]:
    """The factors that can have any size.

    What is neither in a parameter nor in a result is none of them: it may be there in one module
    and not in another that computes the same.
    """
    anchored: dict[Factor, None] = {}
    waiting = [leaf for flow in flows for *_, f in _entry_dimensions(flow) for leaf in leaves([f])]
    while waiting:
        factor = waiting.pop()
        if factor not in anchored:
            anchored[factor] = None
            if factor in following:
                waiting += leaves([following[factor].part])
    return [f for f in anchored if not f.reason and f.size > 0 and f not in following]


def _settle(flow: Flow) -> None:
    """Decide what can only be decided when no dimension is split any more.

    An iota counts from 0 up, so that only its end can move: fewer of its major factor. A slice of
    one element can be at either end of what shrinks.
    """
    for instruction, dimension in flow.iotas:
        minor = leaves([flow.of(instruction)[dimension]])[1:]
        flow.stay(minor, instruction, "iota along part of a dimension")
    for instruction, dimension in flow.points:
        position = slices_of(instruction)[dimension].start
        for factor in reversed(leaves([flow.of(instruction.operands[0])[dimension]])):
            position, digit = divmod(position, factor.size)
            if digit not in (0, factor.size - 1):
                flow.stay([factor], instruction, "an element in the middle")


def _entry_dimensions(flow: Flow) -> Iterator[tuple[str, int, Factor]]:
    """The dimensions of parameters and result: instruction, number, factor."""
    entry = flow.module.entry
    for instruction in (*entry.parameters, entry.root):
        for leaf in flow.values[instruction]:
            for number, factor in enumerate(leaf):
                yield instruction.name, number, factor


def _change(before: int, after: int) -> str:
    if before == after:
        return f"nothing in {counted(before, 'element')}"
    return f"{before:,} → {counted(after, 'element')}"
