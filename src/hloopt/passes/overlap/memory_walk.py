"""The walk from a program that is too large to one that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from hloopt.passes.overlap.decisions import Decision
from hloopt.passes.overlap.judging import Judged
from hloopt.passes.overlap.memory_proposals import (
    Series,
    alike_stacks,
    memory_proposals,
    offloaded,
    sunk,
)
from hloopt.passes.overlap.options import Family
from hloopt.passes.overlap.search import LEAST_GAIN, OverlapSearch
from hloopt.search_budget import SearchBudget

_LEAST_SAVED = 1e-3
"""The share of its memory that a decision has to save."""


@dataclass(slots=True)
class MemoryWalk:
    """Makes decisions until a program fits: of those that save memory the cheapest in time a
    byte."""

    search: OverlapSearch
    families: tuple[Family, ...]

    def run(self, budget: SearchBudget) -> None:
        """Leave the best program in the search. Ends when it fits, or nothing saves memory."""
        place: Judged | None = self.search.best
        while place is not None and place.allocated > self.search.goal.limit:
            place = self._step(place, budget)
            if place is not None and self.search.goal.is_better(place, self.search.best):
                self.search.best = place

    def _step(self, place: Judged, budget: SearchBudget) -> Judged | None:
        """The program after the next decision; None where none helps or the budget is used up.

        A kind of decision that costs no time is taken before others are tried.
        """
        length = self.search.goal.length
        smaller: list[Judged] = []
        for made in self._kinds(place, budget):
            free = [judged for judged in made if length(judged) <= length(place)]
            smaller += made
            if free:
                return min(free, key=partial(self._price, place))
        return min(smaller, key=partial(self._price, place), default=None)

    def _kinds(self, place: Judged, budget: SearchBudget) -> Iterator[list[Judged]]:
        """By kind of decision the smaller programs that it leads to."""
        if "sink" in self.families:
            yield list(self._made(place, (sunk(),), budget))
        if "offload" in self.families:
            yield self._offloaded(place, budget)
        several = list(memory_proposals(place, self.search.goal.limit, self.families))
        self.search.plan((*place.decisions, each) for series in several for each in series)
        for series in several:
            yield list(self._made(place, series, budget))

    def _offloaded(self, place: Judged, budget: SearchBudget) -> list[Judged]:
        """The smaller programs with stacks in host memory that fit: with as many of the cheapest
        as it takes, and with all where a step is shorter then. All smaller ones where none fits:
        something else is needed, too, maybe with some of the stacks."""
        goal = self.search.goal
        tried = self._one_by_one(place, budget)
        smaller = [judged for judged, _ in tried]
        stacks = [name for _, names in tried for name in names]
        saved = [place.allocated - judged.allocated for judged, names in tried for _ in names]
        for number in range(2, len(stacks) + 1):
            enough = next(filter(goal.fits, smaller), None)
            is_expected = place.allocated - sum(saved[:number]) <= goal.limit
            if number < len(stacks) and (enough is not None or not is_expected):
                continue
            together = self._smaller(place, offloaded(tuple(stacks[:number])), budget)
            if together is not None and (
                enough is None or goal.is_better(together, enough, least=LEAST_GAIN)
            ):
                smaller.append(together)
        return list(filter(goal.fits, smaller)) or smaller

    def _one_by_one(
        self, place: Judged, budget: SearchBudget
    ) -> list[tuple[Judged, tuple[str, ...]]]:
        """The smaller programs with a single stack in host memory, the cheapest first, each with
        the names of the stacks like it, which are taken to be as cheap."""
        alike = alike_stacks(place.draft.module)
        self.search.plan((*place.decisions, offloaded(names[:1])) for names in alike)
        judged = [self._smaller(place, offloaded(names[:1]), budget) for names in alike]
        found = [(one, names) for one, names in zip(judged, alike, strict=True) if one is not None]
        return sorted(found, key=lambda each: self._price(place, each[0]))

    def _made(self, place: Judged, series: Series, budget: SearchBudget) -> Iterator[Judged]:
        """The smaller programs that a series leads to. Once one fits, what saves more is left out:
        it is expected to take longer. So it is once a decision needs no less than the one before
        it: what it aims at is out of reach."""
        last: Judged | None = None
        for decision in series:
            judged = self._judged(place, decision, budget)
            if judged is None:
                continue
            if last is not None and judged.allocated >= last.allocated:
                return
            last = judged
            if self._saves(judged, place):
                yield judged
                if self.search.goal.fits(judged):
                    return

    def _smaller(self, place: Judged, decision: Decision, budget: SearchBudget) -> Judged | None:
        """The program after a decision; None where it saves no memory."""
        judged = self._judged(place, decision, budget)
        return judged if judged is not None and self._saves(judged, place) else None

    def _judged(self, place: Judged, decision: Decision, budget: SearchBudget) -> Judged | None:
        make = partial(place.draft.after, decision)
        return self.search.judged((*place.decisions, decision), make, budget)

    def _saves(self, judged: Judged, place: Judged) -> bool:
        return judged.allocated < place.allocated * (1 - _LEAST_SAVED)

    def _price(self, place: Judged, judged: Judged) -> tuple[float, int]:
        """Time a byte that is saved, of the bytes that have to be."""
        goal = self.search.goal
        saved = place.allocated - max(judged.allocated, goal.limit)
        longer = goal.length(judged) - goal.length(place)
        # Where both are saved, the shorter step is better, however much more it saves.
        return (longer / saved if longer > 0 else longer, judged.allocated)
