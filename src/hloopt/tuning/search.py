"""The search for flags: rounds of single changes of the best, those that help taken together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from hloopt.tuning.judgement import Choice, Judged
from hloopt.tuning.space import Space

JudgeAll = Callable[[Sequence[Choice]], Iterable[Judged]]
_LEAST_GAIN = 1e-4
"""The share of a step by which it has to become shorter."""


class Search:
    """A search, with all that it judged so far.

    Flags interact: changes are judged on top of the best, those that help alone together, too.

    It begins with no flags, and with the boldest value of each. A round judges all single changes
    of the best, about as many compiles as there are values; the search ends with a round that finds
    nothing better.
    """

    def __init__(self, space: Space, judge_all: JudgeAll) -> None:
        self._space = {name: list(values) for name, values in space.items()}
        self._judge_all = judge_all
        self.judged: dict[Choice, Judged] = {}
        self.unknown: list[str] = []
        """Flags that this XLA does not know."""

    def run(self) -> Judged:
        """The best; `judged` has all. Raises whatever `judge_all` raises, as when time is up."""
        best = self._judge([()])[()]
        self._drop_unknown_flags()
        self._judge([_choice({name: values[-1] for name, values in self._space.items()})])
        while True:
            self._judge(list(self._neighbours(best.flags)))
            together = self._together(best)
            if together is not None:
                self._judge([together])
            found = min(self.judged.values(), key=_seconds)
            if not _is_shorter(found, best):
                return self._simplest(best)
            best = found

    def _simplest(self, best: Judged) -> Judged:
        """One of no other time with fewer flags: without those that nobody misses, all at once or
        one after the other."""

        def is_missed(flags: Choice) -> bool:
            return _is_shorter(best, self._judge([flags])[flags])

        # Each flag was taken from the best in the last round.
        idle = [flag for flag in best.flags if not is_missed(_without(best.flags, flag))]
        rest = _without(best.flags, *idle)
        if is_missed(rest):
            rest = best.flags
            for flag in idle:
                if not is_missed(fewer := _without(rest, flag)):
                    rest = fewer
        equal = [each for each in self.judged.values() if not _is_shorter(best, each)]
        return min(equal, key=lambda each: (len(each.flags), _seconds(each)))

    def _judge(self, choices: Sequence[Choice]) -> dict[Choice, Judged]:
        new = [choice for choice in dict.fromkeys(choices) if choice not in self.judged]
        for judged in self._judge_all(new):
            self.judged[judged.flags] = judged
        return self.judged

    def _drop_unknown_flags(self) -> None:
        """Ask of each flag alone, where it is not known yet that XLA takes it."""
        alone = {name: _choice({name: values[-1]}) for name, values in self._space.items()}
        self._judge(list(alone.values()))
        self.unknown = [name for name, each in alone.items() if self.judged[each].is_unknown_flag]
        for name in self.unknown:
            del self._space[name]

    def _neighbours(self, flags: Choice) -> Iterator[Choice]:
        given = dict(flags)
        for name, values in self._space.items():
            rest = {key: value for key, value in given.items() if key != name}
            if name in given:
                yield _choice(rest)
            for value in values:
                if given.get(name) != value:
                    yield _choice({**rest, name: value})

    def _together(self, best: Judged) -> Choice | None:
        """The best change of each flag, all that help at once; None for fewer than two."""
        given = dict(best.flags)
        changes: dict[str, Judged] = {}
        for choice in self._neighbours(best.flags):
            judged = self.judged[choice]
            if _is_shorter(judged, best):
                (name,) = {key for key, _ in set(choice) ^ set(best.flags)}
                changes[name] = min(changes.get(name, judged), judged, key=_seconds)
        if len(changes) < 2:
            return None
        for name, judged in changes.items():
            value = dict(judged.flags).get(name)
            given.pop(name, None)
            if value is not None:
                given[name] = value
        return _choice(given)


def _without(flags: Choice, *those: tuple[str, str]) -> Choice:
    return tuple(flag for flag in flags if flag not in those)


def _choice(flags: dict[str, str]) -> Choice:
    return tuple(sorted(flags.items()))


def _seconds(judged: Judged) -> float:
    return float("inf") if judged.seconds is None else judged.seconds


def _is_shorter(one: Judged, other: Judged) -> bool:
    return _seconds(one) < _seconds(other) * (1 - _LEAST_GAIN)


def front_of(judged: Iterable[Judged]) -> list[Judged]:
    """The Pareto front of step time against peak memory, the shortest step first.

    Of equals the one with fewer flags is on it. O(n log n).
    """
    ranked = sorted(
        (each for each in judged if each.seconds is not None and each.peak is not None),
        key=lambda each: (each.seconds, each.peak, len(each.flags)),
    )
    front: list[Judged] = []
    for each in ranked:
        assert each.peak is not None
        if not front or each.peak < (front[-1].peak or 0):
            front.append(each)
    return front
