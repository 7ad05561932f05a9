"""The search for an assignment: settings of the rules, orders of buffers, uses left outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from hloopt.ir import Module
from hloopt.memory_space.allocation.hints import NO_HINTS, Hints, ValueName
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.passes.memory_space.search.bound import least_seconds
from hloopt.passes.memory_space.search.orders import (
    per_area,
    per_root_of_area,
    per_step,
    ranked,
    worths,
)
from hloopt.passes.memory_space.search.settings import (
    EARLY,
    EARLY_FEW,
    EFFICIENT,
    NO_CHANGE,
    WITHOUT_COPIES,
    Settings,
    varied,
    with_settings,
)
from hloopt.passes.memory_space.search.trial import Read, Trial, try_assignment
from hloopt.passes.memory_space.times import run_times
from hloopt.search_budget import Progress, SearchBudget, SearchLimits

_FEW = (1, 1, 3, 10)
"""How many uses or buffers a change is about."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best assignment found, and the times by the cost model."""

    best: Trial | None
    """None where everything in default memory is as good."""
    seconds: float
    plain: float
    """With everything in default memory."""
    heuristic: float
    """By the rules alone."""
    least: float
    tried: int


def search_assignment(
    module: Module, options: MemorySpaceOptions, on_progress: Progress | None = None
) -> Outcome:
    """Look for the assignment of a scheduled module that runs for the shortest time.

    The rules' own is the first one tried. Each is near-linear in the module's size.
    """
    search = options.search or SearchLimits()
    budget = SearchBudget("places", search, on_progress)
    walk = _Walk(module, options, Random(search.seed))
    heuristic = walk.best.seconds
    for settings, hints in walk.beginnings():
        if not budget.take():
            break
        walk.visit(settings, hints)
    while budget.take():
        walk.step()
    plain = run_times(module, options).seconds
    best = walk.best if walk.best.seconds < plain else None
    seconds = plain if best is None else best.seconds
    return Outcome(best, seconds, plain, heuristic, least_seconds(module, options), budget.taken)


class _Walk:
    """Steps from the best assignment so far to a neighbour, which is kept where it is better."""

    def __init__(self, module: Module, options: MemorySpaceOptions, random: Random) -> None:
        self._module, self._options, self._random = module, options, random
        self._settings: Settings = NO_CHANGE
        self.best = try_assignment(module, options, NO_HINTS)

    def beginnings(self) -> Iterator[tuple[Settings, Hints]]:
        """Assignments that are often good, the most promising first."""
        found = worths(self._module, self._options)
        by_step, by_root, by_area = (
            Hints(ranks=ranked(found, value)) for value in (per_step, per_root_of_area, per_area)
        )
        yield EFFICIENT, by_step
        yield EFFICIENT, by_root
        yield EARLY_FEW, NO_HINTS
        yield EFFICIENT, NO_HINTS
        yield WITHOUT_COPIES, NO_HINTS
        yield EARLY, NO_HINTS
        yield NO_CHANGE, by_root
        yield EFFICIENT, by_area
        yield WITHOUT_COPIES, by_root
        yield EARLY, by_root
        yield NO_CHANGE, by_step
        yield {**WITHOUT_COPIES, **EFFICIENT}, by_step

    def visit(self, settings: Settings, hints: Hints) -> None:
        """Try an assignment; it is the best one from now on if it is better."""
        trial = try_assignment(self._module, with_settings(self._options, settings), hints)
        if trial.seconds < self.best.seconds:
            self.best, self._settings = trial, settings

    def step(self) -> None:
        """Try a neighbour of the best assignment."""
        hints, random = self.best.hints, self._random
        changes = (self._vary, self._deny, self._allow, self._promote, self._demote)
        settings, hints = random.choices(changes, (3, 3, 1, 4, 1))[0](hints)
        self.visit(settings, hints)

    def _vary(self, hints: Hints) -> tuple[Settings, Hints]:
        return varied(self._options, self._settings, self._random), hints

    def _deny(self, hints: Hints) -> tuple[Settings, Hints]:
        """Let uses read default memory whose prefetches are waited for, for too little."""
        random = self._random
        reads = [read for read in self.best.reads if read.wait > 0]
        if not reads:
            return self._promote(hints)
        bar = random.choice((0.5, 1.0, 2.0))
        wasted = [read for read in reads if read.wait > bar * read.gain] or reads
        wasted.sort(key=_net)
        if random.random() < 0.5:
            random.shuffle(wasted)
        count = random.choice((*_FEW, len(wasted) // 2, len(wasted)))
        denied = {read.use for read in wasted[: max(count, 1)]}
        return self._settings, replace(hints, denied=hints.denied | denied)

    def _allow(self, hints: Hints) -> tuple[Settings, Hints]:
        """Let uses read alternate memory again."""
        denied = sorted(hints.denied)
        if not denied:
            return self._vary(hints)
        count = min(self._random.choice((*_FEW, len(denied) // 2 + 1)), len(denied))
        again = self._random.sample(denied, count)
        return self._settings, replace(hints, denied=hints.denied.difference(again))

    def _promote(self, hints: Hints) -> tuple[Settings, Hints]:
        """Place buffers first that are outside, rather those that would gain much."""
        outside = self.best.outside
        if not outside:
            return self._vary(hints)
        count = self._random.choice(_FEW)
        chosen = self._random.choices(list(outside), list(outside.values()), k=count)
        return self._settings, _ranked(hints, chosen, min(hints.ranks.values(), default=0) - 1)

    def _demote(self, hints: Hints) -> tuple[Settings, Hints]:
        """Place some buffers last."""
        names = sorted(hints.ranks) or sorted(self.best.outside)
        if not names:
            return self._vary(hints)
        chosen = self._random.sample(names, min(self._random.choice(_FEW), len(names)))
        return self._settings, _ranked(hints, chosen, max(hints.ranks.values(), default=0) + 1)


def _net(read: Read) -> float:
    return read.gain - read.wait


def _ranked(hints: Hints, names: list[ValueName], rank: int) -> Hints:
    return replace(hints, ranks={**hints.ranks, **dict.fromkeys(names, rank)})
