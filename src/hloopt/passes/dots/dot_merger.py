"""Merge dots that share an operand into one dot."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from hloopt.analysis.reachability import Antichain, Reachability
from hloopt.analysis.side_effects import SideEffects
from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.options import Bytes
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.dots.merged_dot import MergedDot, Part
from hloopt.passes.dots.shared_operands import Sharer, sharer, why_not
from hloopt.passes.rewriting.replace import remove_unused

_MOST_REFUSED = 500
"""Dots that are tried one after the other for one merge, and depend on what is in it."""

_Members = dict[Instruction, Sharer]
"""Dots that share an operand, in order."""


@register(
    "dot-merger",
    preserves="rounding",
    xla=XlaPass("DotMerger", "xla/hlo/transforms/simplifiers/dot_merger.h"),
)
class DotMerger(ModulePass):
    """Make one dot of several that share an operand, of the concatenation of their other operands.

    The operand is what is found behind transposes and reshapes that keep batch, contracting and
    free dimensions apart; it may be the left one of one dot and the right one of another. Element
    types, precisions, algorithms and backend configs agree. The old results are slices of the new
    one, transposed and reshaped; transposes and reshapes behind them are joined with those. Dots of
    which one depends on the other are not merged, nor are those with control dependencies, dynamic
    or empty arrays, or an operand converted from less than 8 bits. Near-linear in the number of
    instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        max_size_to_merge: Bytes | None = option(
            None,
            "operands and result of a dot; a merge has at most one larger one beside smaller ones",
        )
        queue_id: Callable[[Instruction], int] | None = option(
            None, "the queue of a dot: those of different ones are not merged"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        if context.is_at_limit:
            return False
        touched: dict[Computation, None] = {}
        for computation in module.computations_with(Opcode.DOT):
            if not computation.is_fusion and self._merge(computation, context):
                touched[computation] = None
        repair_schedule(touched)
        return bool(touched)

    def _merge(self, computation: Computation, context: PassContext) -> bool:
        """Merge the dots of one computation; whether there were any to merge."""
        classes = self._classes(computation, context)
        merges = _Planner(computation, self._is_small).plan(classes)
        self._tell_missed(classes, merges, context)
        now: dict[Instruction, Instruction] = {}
        parts: list[Part] = []
        for group in merges:
            first, source = group[0].dot, group[0].source
            others = counted(len(group) - 1, "other dot")
            if not context.apply(first, f"merged with {others} of %{source.name}"):
                break
            context.count("dots merged", len(group))
            made = MergedDot([replace(s, source=now.get(source, source)) for s in group]).replace()
            now.update(zip([s.dot for s in group], [part.result for part in made], strict=True))
            parts += made
        if not parts:
            return False
        for part in parts:
            part.shorten_chains()
        _remove_dead(computation.module, parts)
        return True

    def _classes(self, computation: Computation, context: PassContext) -> list[_Members]:
        """Dots by what they share, where that are several."""
        queue_id = self.options.queue_id or (lambda dot: 0)
        classes: dict[Hashable, _Members] = {}
        for dot in computation.instructions:
            if dot.opcode is not Opcode.DOT:
                continue
            if reason := why_not(dot):
                context.missed(dot, reason)
                continue
            for number in (0, 1):
                seen = sharer(dot, number)
                classes.setdefault(seen.key(queue_id), {}).setdefault(dot, seen)
        return [members for members in classes.values() if len(members) > 1]

    def _is_small(self, dot: Instruction) -> bool:
        most = self.options.max_size_to_merge
        shapes = [dot.shape, *[operand.shape for operand in dot.operands]]
        return most is None or sum(map(shape_bytes, shapes)) <= most

    def _tell_missed(
        self, classes: list[_Members], merges: list[list[Sharer]], context: PassContext
    ) -> None:
        if not context.wants_remarks:
            return
        merged = {s.dot for group in merges for s in group}
        for dot in dict.fromkeys(dot for members in classes for dot in members):
            if dot in merged:
                continue
            context.missed(
                dot,
                "the dots that it shares an operand with run before or after it, or are merged"
                if self._is_small(dot)
                else "it takes more than max_size_to_merge, and finds no smaller dot to join",
            )


def _remove_dead(module: Module, parts: Iterable[Part]) -> None:
    """Remove what only the old dots needed, and results of which only rearranged ones are read."""
    effects = SideEffects(module)
    stack = [i for part in parts for i in (*part.operands, part.result)]
    while stack:
        instruction = stack.pop()
        if instruction not in instruction.parent or effects.of(instruction):
            continue
        operands = dict.fromkeys(instruction.operands)
        remove_unused([instruction])
        if instruction not in instruction.parent:
            stack += operands


# -- choosing -------------------------------------------------------------------------------------


class _Planner:
    """Chooses which dots of one computation are merged, so that none depends on itself."""

    def __init__(self, computation: Computation, is_small: Callable[[Instruction], bool]) -> None:
        self._computation = computation
        self._is_small = is_small
        self._added: list[tuple[Instruction, Instruction]] = []

    def plan(self, classes: Iterable[_Members]) -> list[list[Sharer]]:
        """The merges, each of at least two dots, in the order in which they are made."""
        merges: list[list[Sharer]] = []
        merged: set[Instruction] = set()
        paths: Reachability | None = None
        try:
            for members in classes:
                pool = _in_order(s for dot, s in members.items() if dot not in merged)
                if len(pool) < 2:
                    continue
                if paths is None:
                    paths = Reachability(self._computation)
                for group in self._groups(pool, paths):
                    merges.append(group)
                    merged.update(s.dot for s in group)
                    self._join(group, paths)
        finally:
            for before, later in self._added:
                later.remove_control_predecessor(before)
        return merges

    def _groups(self, pool: list[Sharer], paths: Reachability) -> Iterator[list[Sharer]]:
        """The merges of dots that share an operand."""
        small = {s.dot for s in pool if self._is_small(s.dot)}
        pool.sort(key=lambda s: s.dot not in small)
        while len(pool) > 1 and pool[0].dot in small:
            if all(paths.reachable(a.dot, b.dot) for a, b in pairwise(pool)):
                return
            group = self._group(pool, small, paths)
            taken = {s.dot for s in group}
            pool = [s for s in pool if s.dot not in taken]
            if len(group) > 1:
                yield group

    def _group(
        self, pool: Sequence[Sharer], small: set[Instruction], paths: Reachability
    ) -> list[Sharer]:
        """The first dot with those of the others that do not depend on each other."""
        group, chosen = [], Antichain(paths)
        refused = 0
        for candidate in pool:
            if chosen.is_connected_with(candidate.dot):
                refused += 1
                if refused == _MOST_REFUSED:
                    break
                continue
            chosen.add(candidate.dot)
            group.append(candidate)
            if candidate.dot not in small:
                break
        return group

    def _join(self, group: Sequence[Sharer], paths: Reachability) -> None:
        """Let what depends on one of the dots depend on all, while further merges are chosen.

        Control dependencies say so: they lead to the last dot, and from it to all users.
        """
        *others, last = [s.dot for s in group]
        edges = [(dot, last) for dot in others]
        edges += [(last, user) for user in dict.fromkeys(u for dot in others for u in dot.users)]
        for before, later in edges:
            if before not in later.control_predecessors:
                later.add_control_predecessor(before)
                self._added.append((before, later))
        paths.update(dict.fromkeys(later for _, later in edges))


def _in_order(sharers: Iterable[Sharer]) -> list[Sharer]:
    """Sizes with large powers of two first: they keep what follows them aligned."""

    def key(one: Sharer) -> tuple[int, int]:
        size = prod(one.other.shape.dimensions[d] for d in one.sides[1].free)
        return -(size & -size), -size

    return sorted(sharers, key=key)
