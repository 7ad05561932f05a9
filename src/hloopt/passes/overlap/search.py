"""The search for decisions that make a program shorter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.proposals import proposals
from hloopt.search_budget import SearchBudget

_LEAST_GAIN = 1e-5
"""The share of a step by which it has to become shorter."""

Key = tuple[tuple[str, tuple[tuple[str, object], ...]], ...]


@dataclass(slots=True)
class OverlapSearch:
    """A walk from decisions to better ones: all that are made by now, with one more or one less."""

    judge: Judge
    limit: int
    """Bytes at the peak."""
    best: Judged
    tried: dict[Key, float | None] = field(default_factory=dict)
    """By decisions the seconds of a step; None where they cannot be made."""

    def run(self, budget: SearchBudget) -> None:
        """Go on until no change of the best is better, or the budget is used up."""
        while budget.part < 1 and self._round(budget):
            pass

    def _round(self, budget: SearchBudget) -> bool:
        """Try changes of the best until one is better; whether one is."""
        best = self.best
        for change in proposals(best, self.judge.options.decisions):
            if self._try(lambda: best.draft.after(*change), (*best.decisions, *change), budget):
                return True
            if budget.part >= 1:
                return False
        for place in range(len(best.decisions)):
            rest = (*best.decisions[:place], *best.decisions[place + 1 :])
            if self._try(lambda: best.draft.without(place), rest, budget):
                return True
        return False

    def _try(
        self,
        make: Callable[[], Draft | None],
        decisions: tuple[Decision, ...],
        budget: SearchBudget,
    ) -> bool:
        key = tuple((each.pass_name, each.options) for each in decisions)
        if key in self.tried or not budget.take():
            return False
        self.tried[key] = None
        draft = make()
        if draft is None:
            return False
        judged = self.judge.finish(draft)
        self.tried[key] = judged.seconds
        if not is_better(judged, self.best, self.limit):
            return False
        self.best = judged
        return True


def is_better(one: Judged, other: Judged, limit: int) -> bool:
    """Whether a program is shorter and fits, or needs less where neither fits."""
    if one.peak > limit:
        return one.peak < other.peak
    return other.peak > limit or one.seconds < other.seconds * (1 - _LEAST_GAIN)
