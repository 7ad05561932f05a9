"""The search for decisions that make a program shorter."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import prod

from hloopt.diagnostics import PassRefused
from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.proposals import proposals
from hloopt.search_budget import SearchBudget

_LEAST_GAIN = 1e-3
"""The share of a step by which a decision has to shorten it."""
_SLACK = (1.1, 1.0)
"""By walk how far above the limit it may go: what it finds on the way counts if that fits."""
_FIRST = 0.5
"""The part of the budget for the first walk, which may find nothing that fits."""
_NEAR = 1.02
"""How far above the limit a program may be for an order to be found that fits."""

_DROPPED = 0.5
"""How often chance drops a decision."""
_ADDED = 3
"""How many decisions it adds at most."""

Key = tuple[tuple[str, tuple[tuple[str, object], ...]], ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """The measure by which one program is better than another.

    Its step is as long as three models of time say in the geometric mean, and none of them may say
    that it is longer than in the program as it was given: what only one of them likes is doubtful.
    With `may_be_longer` memory goes before time, and they may.
    """

    limit: int
    """Bytes that a program may be given."""
    given: Judged
    may_be_longer: bool = False

    def is_better(self, one: Judged, other: Judged, *, slack: float = 1, least: float = 0) -> bool:
        """Whether a program fits, within `slack`, and is shorter by the share `least` at least; of
        two that do not fit, whether it needs less memory."""
        if not self.fits(one, slack):
            return not self.fits(other, slack) and one.allocated < other.allocated
        return not self.fits(other, slack) or self.length(one) < self.length(other) * (1 - least)

    def fits(self, judged: Judged, slack: float = 1) -> bool:
        """Whether a program needs no more memory than it may, and no more time by any model."""
        is_small = judged.allocated <= self.limit * slack
        return is_small and (self.may_be_longer or max(self._ratios(judged)) <= 1)

    def length(self, judged: Judged) -> float:
        """The length of a step, that of the program as it was given being 1."""
        return prod(self._ratios(judged)) ** (1 / 3)

    def _ratios(self, judged: Judged) -> tuple[float, float, float]:
        given = self.given
        return (
            _ratio(judged.seconds, given.seconds),
            _ratio(judged.smooth_seconds, given.smooth_seconds),
            _ratio(judged.scheduler_seconds, given.scheduler_seconds),
        )


@dataclass(slots=True)
class OverlapSearch:
    """Walks from decisions to better ones: all that are made by now, with some more or one less.

    The first walk may need more memory than there is: what one decision costs another may give
    back. The second begins at the best that fits. Those after it begin near the best, at decisions
    that chance changed.
    """

    judge: Judge
    goal: Goal
    best: Judged
    tried: dict[Key, Judged | None] = field(default_factory=dict)
    """By decisions how they were judged; None where they cannot be made."""

    def run(self, budget: SearchBudget) -> None:
        """Search until the budget is used up, or there is nothing to decide."""
        for slack, until in zip(_SLACK, (_FIRST, 1.0), strict=True):
            self._walk(self.best, slack, budget, until)
        if not any(True for _ in self._proposals(self.best)):
            return
        chance = random.Random(self.judge.options.seed)
        while budget.take():
            self._walk(self._nearby(chance, budget), _SLACK[0], budget)

    def _walk(
        self, place: Judged | None, slack: float, budget: SearchBudget, until: float = 1.0
    ) -> None:
        """Go on until no change of a place makes it better, or a part of the budget is used."""
        while place is not None and budget.part < until:
            place = self._step(place, slack, budget, until)

    def _nearby(self, chance: random.Random, budget: SearchBudget) -> Judged | None:
        """The best program with one decision less and a few more, all by chance."""
        draft: Draft | None = self.best.draft
        if self.best.decisions and chance.random() < _DROPPED:
            draft = self.best.draft.without(chance.randrange(len(self.best.decisions)))
        changes = list(self._proposals(self.best))
        for change in chance.sample(changes, min(chance.randint(1, _ADDED), len(changes))):
            if draft is not None:
                draft = draft.after(*change) or draft
        if draft is None:
            return None
        return self.judged(draft.decisions, lambda: draft, budget)

    def _proposals(self, judged: Judged) -> Iterator[tuple[Decision, ...]]:
        return proposals(judged, self.judge.options.decisions)

    def _step(
        self, place: Judged, slack: float, budget: SearchBudget, until: float
    ) -> Judged | None:
        """The first change of a place that is better; None where none is, or none can be tried."""
        for change in self._proposals(place):
            decisions = (*place.decisions, *change)
            judged = self.judged(decisions, partial(place.draft.after, *change), budget)
            if judged is not None and self._is_step(judged, place, slack):
                return judged
            if budget.part >= until:
                return None
        for number in range(len(place.decisions)):
            rest = (*place.decisions[:number], *place.decisions[number + 1 :])
            judged = self.judged(rest, partial(place.draft.without, number), budget)
            if judged is not None and self._is_step(judged, place, slack):
                return judged
        return None

    def _is_step(self, judged: Judged, place: Judged, slack: float) -> bool:
        return self.goal.is_better(judged, place, slack=slack, least=_LEAST_GAIN)

    def judged(
        self,
        decisions: tuple[Decision, ...],
        make: Callable[[], Draft | None],
        budget: SearchBudget,
    ) -> Judged | None:
        key = tuple((each.pass_name, each.options) for each in decisions)
        if key in self.tried:
            return self.tried[key]
        if not budget.take():
            return None
        self.tried[key] = None
        draft = make()
        if draft is None:
            return None
        try:
            judged = self.tried[key] = self.judge.finish(draft)
        except PassRefused:  # resources do not suffice for it
            return None
        if self.goal.is_better(judged, self.best, least=_LEAST_GAIN):
            self.best = judged
        return judged

    def shortest(self, number: int) -> list[Judged]:
        """That many of the shortest programs that nearly fit, the best first. An order may be found
        that needs less memory."""
        near = [
            judged
            for judged in self.tried.values()
            if judged is not None and self.goal.fits(judged, _NEAR) and judged is not self.best
        ]
        return [self.best, *sorted(near, key=self.goal.length)[: number - 1]]


def _ratio(seconds: float, given: float) -> float:
    return seconds / given if given else 1.0
