"""The walk from a program that is too large to one that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from hloopt.passes.overlap.judging import Judged
from hloopt.passes.overlap.memory_proposals import Series, memory_proposals
from hloopt.passes.overlap.options import Family
from hloopt.passes.overlap.search import OverlapSearch
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
        """The program after the next decision; None where none helps or the budget is used up."""
        smaller: list[Judged] = []
        several = list(memory_proposals(place, self.search.goal.limit, self.families))
        self.search.plan((*place.decisions, each) for series in several for each in series)
        for series in several:
            smaller += self._made(place, series, budget)
        return min(smaller, key=partial(self._price, place), default=None)

    def _made(self, place: Judged, series: Series, budget: SearchBudget) -> Iterator[Judged]:
        """The smaller programs that a series leads to. Once one fits, what saves more is left out:
        it is expected to take longer."""
        for decision in series:
            if budget.part >= 1:
                return
            make = partial(place.draft.after, decision)
            judged = self.search.judged((*place.decisions, decision), make, budget)
            if judged is not None and judged.allocated < place.allocated * (1 - _LEAST_SAVED):
                yield judged
                if self.search.goal.fits(judged):
                    return

    def _price(self, place: Judged, judged: Judged) -> tuple[float, int]:
        """Time a byte that is saved, of the bytes that have to be."""
        goal = self.search.goal
        saved = place.allocated - max(judged.allocated, goal.limit)
        longer = goal.length(judged) - goal.length(place)
        # Where both are saved, the shorter step is better, however much more it saves.
        return (longer / saved if longer > 0 else longer, judged.allocated)
