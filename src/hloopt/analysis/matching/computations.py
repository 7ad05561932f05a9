"""The choice of a partner for a computation: proposed by matched callers, or similar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from heapq import nsmallest

from hloopt.analysis.matching.evidence import op_name
from hloopt.analysis.matching.labels import Labels, Level
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode

_LEAST_ALIKE = 0.5
_MOST_COMPARED = 50


class ComputationChoice:
    """Chooses partners for computations, by the votes of matched callers, content and names.

    Callers that are partners vote for their callees: strongly where they are equal otherwise,
    weakly where they differ (a combined collective calls one reducer of many).
    """

    def __init__(self, before: Module, after: Module, labels: Labels) -> None:
        self._labels = labels
        self._old: dict[Computation, None] = dict.fromkeys(before.computations.values())
        self._new: dict[Computation, None] = dict.fromkeys(after.computations.values())
        self._strong: dict[Computation, Counter[Computation]] = {}
        self._all: dict[Computation, Counter[Computation]] = {}
        self._rivals: dict[Computation, dict[Computation, None]] = {}
        self._named = dict(after.computations)
        self._of_class: dict[Hashable, list[Computation]] = {}
        """Computations after, by class and, once `_equal` asks, also by class and op_names."""
        self._of_root: dict[Opcode, list[Computation]] = {}
        for new in self._new:
            self._of_class.setdefault(labels.classes[new], []).append(new)
            self._of_root.setdefault(new.root.opcode, []).append(new)
        self._has_origins = False
        self._counts: dict[Computation, Counter[int]] = {}
        self._known_origins: dict[Computation, tuple[str, ...]] = {}

    def take(self, old: Computation, new: Computation) -> None:
        """Note that two computations are partners now."""
        del self._old[old]
        del self._new[new]

    def propose(self, old: Instruction, new: Instruction) -> None:
        """Let a pair of callers vote for the pairs of their callees."""
        if not old.called or not new.called:
            return
        at = self._labels.at
        is_strong = at(Level.OPEN, old) == at(Level.OPEN, new)
        for a, b in zip(old.called, new.called, strict=False):
            self._all.setdefault(a, Counter())[b] += 1
            if is_strong:
                self._strong.setdefault(a, Counter())[b] += 1
            self._rivals.setdefault(b, {})[a] = None

    def called_alike(self, old: Computation) -> Computation | None:
        """The best partner by strong votes, unless another computation has a better claim to it.

        None if it is equal but for op_names: one with these op_names may still come.
        """
        new = self._best_called(old, self._strong)
        if new is None or self._origins(old) == self._origins(new):
            return new
        classes = self._labels.classes
        return None if classes[old] == classes[new] else new

    def alike(self, old: Computation) -> Computation | None:
        """The best free partner: by strong votes, equal content, any vote, or similarity."""
        found = self._best_called(old, self._strong)
        if found is not None:
            return found
        equal = self._equal(old)
        if equal is not None and equal.name == old.name:
            return equal
        return self._best_called(old, self._all) or equal or self._most_alike(old)

    def _equal(self, old: Computation) -> Computation | None:
        """A free computation of equal content, preferably with the same op_names or name.

        Else the last one: callers are matched first, and stand last in the text.
        """
        group = self._labels.classes[old]
        if not self._has_origins:
            self._has_origins = True
            for new in self._new:
                key = self._labels.classes[new], self._origins(new)
                self._of_class.setdefault(key, []).append(new)
        alike = self._last_free((group, self._origins(old)))
        named = self._named.get(old.name)
        if named is None or named not in self._new or self._labels.classes[named] != group:
            return alike or self._last_free(group)
        return named if alike is None or self._origins(named) == self._origins(old) else alike

    def _last_free(self, key: Hashable) -> Computation | None:
        members = self._of_class.get(key, [])
        while members and members[-1] not in self._new:
            members.pop()
        return members[-1] if members else None

    def _free(self, computations: Iterable[Computation]) -> list[Computation]:
        return [new for new in computations if new in self._new]

    def _best_called(
        self, old: Computation, votes: dict[Computation, Counter[Computation]]
    ) -> Computation | None:
        def claim(old: Computation, new: Computation) -> tuple[bool, bool, bool, int, bool]:
            """Rank of a pair; names decide only between structural equals."""
            is_equal = self._labels.classes[old] == self._labels.classes[new]
            has_name = old.name == new.name
            return (
                *(is_equal, is_equal and self._origins(old) == self._origins(new)),
                *(is_equal and has_name, votes.get(old, _NONE)[new], has_name),
            )

        candidates = self._free(votes.get(old, ()))
        if len(candidates) == 1 and len(self._rivals[candidates[0]]) == 1:
            return self._of_like_origin(old, candidates[0])
        for new in sorted(candidates, key=lambda new: claim(old, new), reverse=True):
            rivals = [rival for rival in self._rivals[new] if rival in self._old]
            if max(rivals, key=lambda rival: claim(rival, new)) is old:
                return self._of_like_origin(old, new)
        return None

    def _of_like_origin(self, old: Computation, new: Computation) -> Computation:
        """`new`, or an equal computation with the op_names of `old` if `new` has others.

        Modules are full of equal reducers, each with metadata of its own.
        """
        classes = self._labels.classes
        if classes[new] != classes[old] or self._origins(old) == self._origins(new):
            return new
        equal = self._equal(old)
        is_alike = equal is not None and self._origins(old) == self._origins(equal)
        return equal if equal is not None and is_alike else new

    def _origins(self, computation: Computation) -> tuple[str, ...]:
        """The op_names of the instructions, sorted."""
        found = self._known_origins.get(computation)
        if found is None:
            found = tuple(sorted(op_name(each) for each in computation.instructions))
            self._known_origins[computation] = found
        return found

    def _most_alike(self, old: Computation) -> Computation | None:
        """The free computation with the most labels in common, at least half of them."""
        best = (_LEAST_ALIKE, False)
        found = None
        candidates = self._free(self._of_root.get(old.root.opcode, ()))
        self._of_root[old.root.opcode] = candidates
        for new in nsmallest(_MOST_COMPARED, candidates, key=lambda n: abs(len(n) - len(old))):
            common = (self._count(old) & self._count(new)).total()
            rank = (2 * common / (len(old) + len(new)), new.name == old.name)
            if rank > best:
                best, found = rank, new
        return found

    def _count(self, computation: Computation) -> Counter[int]:
        found = self._counts.get(computation)
        if found is None:
            core = self._labels.core
            found = self._counts[computation] = Counter(core[i] for i in computation.instructions)
        return found


_NONE: Counter[Computation] = Counter()
