"""The gain that a change of a program is expected to bring, learned while changes are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hloopt.passes.overlap.decisions import Decision
from hloopt.passes.overlap.judging import Judged

Change = tuple[Decision, ...]
"""Decisions that are made together."""

_SHARE_SAVED: Mapping[str, float] = {"pipeline": 0.7, "split": 0.4, "combine": 0.2, "unroll": 0.2}
"""By family the part of the waiting at stake that a change is expected to save at first."""
_RARELY = 0.1
_WEIGHT = 2
"""Trials that the expectation counts as."""
_PLACES = ("names", "loops")
"""Options that say where a decision is made, not how."""


@dataclass(slots=True)
class Estimates:
    """The share of a step that changes are expected to save.

    A change that has been tried, at whatever place, is expected to save again what it saved then.
    Of one that has not, the waiting is known that is at stake, and what part of it changes of that
    kind have saved so far.
    """

    _saved: dict[Change, float] = field(default_factory=dict)
    _parts: dict[tuple[object, ...], list[float]] = field(default_factory=dict)

    def ranked(self, changes: Iterable[Change], place: Judged) -> list[tuple[float, Change]]:
        """Changes with what they are expected to save, the most promising first."""
        found = [(self._expected(change, place), change) for change in changes]
        return sorted(found, key=lambda each: -each[0])

    def learn(self, change: Change, place: Judged, saved: float) -> None:
        """Take in what a change saved at a place; negative where the step became longer."""
        self._saved[change] = saved
        at_stake = _at_stake(change, place)
        if at_stake > 0:
            part = min(max(saved / at_stake, 0.0), 1.0)
            self._parts.setdefault(_kind(change), []).append(part)

    def _expected(self, change: Change, place: Judged) -> float:
        if change in self._saved:
            return self._saved[change]
        parts = self._parts.get(_kind(change), [])
        first = _SHARE_SAVED.get(change[0].family, _RARELY)
        part = (first * _WEIGHT + sum(parts)) / (_WEIGHT + len(parts))
        return part * _at_stake(change, place)


def _kind(change: Change) -> tuple[object, ...]:
    """The passes and options of a change, without the places."""
    return tuple(
        (each.pass_name, *(option for option in each.options if option[0] not in _PLACES))
        for each in change
    )


def _at_stake(change: Change, place: Judged) -> float:
    """The share of a step that is waiting for the collectives of a change; all waiting where it
    does not name them."""
    names: set[object] = set()
    for decision in change:
        chosen = dict(decision.options).get("names")
        if not isinstance(chosen, tuple):
            return place.exposed / place.seconds if place.seconds else 0.0
        names.update(chosen)
    waiting = sum(place.waits.get(str(name), 0.0) for name in names)
    return waiting / place.seconds if place.seconds else 0.0
