"""The walk from a program that is too large to one that fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

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
        """The program that fits with as few of the cheapest stacks in host memory as it takes, or
        with more where a step is clearly shorter then. All smaller ones where none fits: something
        else is needed, too, maybe with some of the stacks."""
        alike = alike_stacks(place.draft.module)
        if not alike:
            return []
        # All come first: a small budget may not suffice to find out which are needed.
        sets = [tuple(chain.from_iterable(alike)), *(names[:1] for names in alike)]
        self.search.plan((*place.decisions, offloaded(names)) for names in sets)
        with_all, *alone = [self._smaller(place, offloaded(names), budget) for names in sets]
        saving = [(one, names) for one, names in zip(alone, alike, strict=True) if one is not None]
        saving.sort(key=lambda each: self._price(place, each[0]))
        smaller = [one for one, _ in saving]
        if not any(map(self._fits, smaller)):
            # Stacks like one that was tried are taken to be as cheap as that.
            cheapest = tuple(chain.from_iterable(names for _, names in saving))
            # One that saves nothing alone may save something with others.
            others = tuple(name for name in sets[0] if name not in cheapest)
            smaller += self._together(place, cheapest, others, with_all, budget)
        if with_all is not None:
            smaller.append(with_all)
        best = self._first_of_the_best(filter(self._fits, smaller))
        if best is None:
            return smaller
        if self.search.best in smaller:  # one with more stacks, but not clearly shorter
            self.search.best = best
        return [best]

    def _together(
        self,
        place: Judged,
        cheapest: tuple[str, ...],
        others: tuple[str, ...],
        with_all: Judged | None,
        budget: SearchBudget,
    ) -> list[Judged]:
        """The smaller programs with several stacks in host memory but not all, where one is not
        enough; those that fit from the fewest stacks on."""
        stacks = cheapest + others
        few, enough = 1, len(stacks)
        is_in_reach = self._fits(with_all)
        number = (few + enough) // 2 if is_in_reach else len(cheapest)
        found: list[Judged] = []
        while few < number < enough:
            judged = self._smaller(place, offloaded(stacks[:number]), budget)
            if judged is not None:
                found.insert(0, judged)
            if self._fits(judged):
                enough, is_in_reach = number, True
            elif is_in_reach:
                few = number
            else:  # neither all nor those that save something alone suffice
                break
            number = (few + enough) // 2
        return found

    def _first_of_the_best(self, several: Iterable[Judged]) -> Judged | None:
        """The first program than which no later one is clearly shorter."""
        best: Judged | None = None
        for judged in several:
            if best is None or self._is_clearly_better(judged, best):
                best = judged
        return best

    def _is_clearly_better(self, one: Judged, other: Judged) -> bool:
        return self.search.goal.is_better(one, other, least=LEAST_GAIN)

    def _fits(self, judged: Judged | None) -> bool:
        return judged is not None and self.search.goal.fits(judged)

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
                if self._fits(judged):
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
