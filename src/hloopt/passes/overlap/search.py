"""The search for decisions that make a program shorter."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import NamedTuple, cast

from hloopt.diagnostics import PassRefused
from hloopt.passes.overlap.ahead import Foreseen, JudgesAhead, NotAhead, content_of
from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.estimates import Change, Estimates
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.proposals import proposals
from hloopt.search_budget import SearchBudget

LEAST_GAIN = 1e-3
"""The share of a step by which a decision has to shorten it."""
_SLACK = (1.1, 1.0)
"""By walk how far above the limit it may go: what it finds on the way counts if that fits."""
_FIRST = 0.5
"""The part of the budget for the first walk, which may find nothing that fits."""
_NEAR = 1.02
"""How far above the limit a program may be for an order to be found that fits."""
_NEAR_TO_FIT = 1.1
"""How far where memory goes before time: in another order less may have to be recomputed."""

_PATIENCE = 0.25
"""The part of what is left of the budget after which the best change so far of a place is made."""
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

    def is_better(self, one: Judged, other: Judged, *, least: float = 0) -> bool:
        """Whether one is the better result: one that is allowed, then as `is_nearer` says."""
        if self.is_allowed(one) != self.is_allowed(other):
            return self.is_allowed(one)
        return self.is_nearer(one, other, least=least)

    def is_nearer(self, one: Judged, other: Judged, *, slack: float = 1, least: float = 0) -> bool:
        """Whether a program has the memory it needs, within `slack`, and is shorter by the share
        `least` at least; of two that do not, whether it needs less."""
        if not self.fits(one, slack):
            return not self.fits(other, slack) and one.allocated < other.allocated
        return not self.fits(other, slack) or self.length(one) < self.length(other) * (1 - least)

    def is_allowed(self, judged: Judged) -> bool:
        """Whether a program needs no more memory than it may, and no more time by any model."""
        return self.fits(judged) and (self.may_be_longer or max(self._ratios(judged)) <= 1)

    def fits(self, judged: Judged, slack: float = 1) -> bool:
        """Whether a program needs no more memory than it may, within `slack`."""
        return judged.allocated <= self.limit * slack

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


class _Trial(NamedTuple):
    """A program to be judged."""

    content: str
    judged: Callable[[], Judged | None]


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
    ahead: JudgesAhead | None = None
    """Processes that judge what is asked for next."""
    _by_content: dict[tuple[str, Key], Judged | None] = field(default_factory=dict, init=False)
    """Different decisions may come to the same program."""
    _estimates: Estimates = field(default_factory=Estimates, init=False)

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
        """The best program with one decision less and a few more, all by chance: the more a change
        is expected to save, the likelier it is made."""
        draft: Draft | None = self.best.draft
        if self.best.decisions and chance.random() < _DROPPED:
            draft = self.best.draft.without(chance.randrange(len(self.best.decisions)))
        ranked = self._estimates.ranked(self._proposals(self.best), self.best)
        if not ranked:
            return None
        weights = [max(expected, LEAST_GAIN) for expected, _ in ranked]
        for _, change in chance.choices(ranked, weights, k=chance.randint(1, _ADDED)):
            if draft is not None and not _is_made(change, draft):
                draft = draft.after(*change) or draft
        if draft is None:
            return None
        return self.judged(draft.decisions, lambda: draft, budget)

    def _proposals(self, judged: Judged) -> Iterator[Change]:
        return proposals(judged, self.judge.options.decisions)

    def _step(
        self, place: Judged, slack: float, budget: SearchBudget, until: float
    ) -> Judged | None:
        """The best change of a place that was found; None where none is better.

        Changes are tried from the most promising on, until none is expected to save more than the
        best has saved, or a part of the budget is used.
        """
        begin = budget.part
        most = begin + (until - begin) * _PATIENCE
        best: Judged | None = None
        ranked = self._estimates.ranked(self._proposals(place), place)
        self.plan((*place.decisions, *change) for _, change in ranked)
        for expected, change in ranked:
            if best is not None and (expected <= self._saved(best, place) or budget.part > most):
                return best
            decisions = (*place.decisions, *change)
            judged = self.judged(decisions, partial(place.draft.after, *change), budget)
            if budget.part >= until:
                return best
            self._estimates.learn(change, place, self._saved(judged, place) if judged else 0.0)
            if judged is not None and self._is_step(judged, best or place, slack):
                best = judged
        return best or self._with_one_less(place, slack, budget)

    def _with_one_less(self, place: Judged, slack: float, budget: SearchBudget) -> Judged | None:
        made = place.decisions
        rests = [(*made[:number], *made[number + 1 :]) for number in range(len(made))]
        self.plan(rests)
        for number, rest in enumerate(rests):
            judged = self.judged(rest, partial(place.draft.without, number), budget)
            if judged is not None and self._is_step(judged, place, slack):
                return judged
        return None

    def _saved(self, judged: Judged, place: Judged) -> float:
        """The share of a step at a place by which a program is shorter."""
        return 1 - self.goal.length(judged) / self.goal.length(place)

    def _is_step(self, judged: Judged, place: Judged, slack: float) -> bool:
        return self.goal.is_nearer(judged, place, slack=slack, least=LEAST_GAIN)

    def judged(
        self,
        decisions: tuple[Decision, ...],
        make: Callable[[], Draft | None],
        budget: SearchBudget,
    ) -> Judged | None:
        key = _key(decisions)
        if key in self.tried:
            return self.tried[key]
        if budget.part >= 1:
            return None
        self.tried[key] = None
        trial = self._trial(decisions, make)
        if trial is None:
            return None
        content = trial.content, _key(tuple(each for each in decisions if each.is_late))
        if content not in self._by_content:
            if not budget.take():
                return None
            self._by_content[content] = trial.judged()
        judged = self.tried[key] = self._by_content[content]
        if judged is not None and self.goal.is_better(judged, self.best, least=LEAST_GAIN):
            self.best = judged
        return judged

    def _trial(
        self, decisions: tuple[Decision, ...], make: Callable[[], Draft | None]
    ) -> _Trial | None:
        """The program after decisions, not judged yet; None where they cannot be made."""
        if self.ahead is not None:
            try:
                found = self.ahead.judged(decisions)
            except NotAhead:
                pass  # it is judged here
            else:
                return found and _Trial(
                    found.content, partial(self._foreseen, found, decisions, make)
                )
        draft = make()
        if draft is None:
            return None
        return _Trial(content_of(draft), partial(self._finished, draft))

    def _foreseen(
        self, found: Foreseen, decisions: tuple[Decision, ...], make: Callable[[], Draft | None]
    ) -> Judged | None:
        if found.figures is None:
            return None
        made = cast("Callable[[], Draft]", make)  # another process has made it
        return self.judge.foreseen(found.figures, decisions, made)

    def _finished(self, draft: Draft) -> Judged | None:
        try:
            return self.judge.finish(draft)
        except PassRefused:  # resources do not suffice for it
            return None

    def plan(self, upcoming: Iterable[tuple[Decision, ...]]) -> None:
        """Announce the sets that are expected next, in order."""
        if self.ahead is not None:
            self.ahead.plan(each for each in upcoming if _key(each) not in self.tried)

    def shortest(self, number: int) -> list[Judged]:
        """That many of the shortest programs that nearly fit, the best first. An order may be found
        that needs less memory. Of equally long ones that with the fewest decisions comes first."""
        slack = _NEAR_TO_FIT if self.goal.may_be_longer else _NEAR
        near = [
            judged
            for judged in self._by_content.values()
            if judged is not None and self.goal.fits(judged, slack) and judged is not self.best
        ]
        return [self.best, *sorted(near, key=self._by_length)[: number - 1]]

    def _by_length(self, judged: Judged) -> tuple[float, int]:
        return round(self.goal.length(judged) / LEAST_GAIN), len(judged.decisions)


def _key(decisions: tuple[Decision, ...]) -> Key:
    return tuple((each.pass_name, each.options) for each in decisions)


def _is_made(change: Change, draft: Draft) -> bool:
    """Whether it is decided already how a program is finished."""
    late = {each.pass_name for each in draft.decisions if each.is_late}
    return any(each.pass_name in late for each in change)


def _ratio(seconds: float, given: float) -> float:
    return seconds / given if given else 1.0
