"""Lowering the peak step by step: what is taken out of memory, and where the peak is then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hloopt.memory.advice.gaps import Gap, Place

_MOST_STEPS = 256
_WORK = 30_000_000  # positions looked at, over all steps


@dataclass(frozen=True, slots=True)
class Step:
    """A place that is given up during a gap.

    `price` orders what can be done at a peak, the lowest first. At the gap's end `extra` bytes are
    in use beside the place. `needs` are places that have to keep what they hold at that position.
    """

    place: Place
    gap: Gap
    price: float
    extra: int = 0
    needs: tuple[Place, ...] = ()


@dataclass(slots=True)
class Relief:
    """A timeline and what was taken out of it."""

    timeline: list[int]
    steps: list[Step] = field(default_factory=list)
    peak: int = 0
    _given_up: dict[Place, list[Gap]] = field(default_factory=dict)
    _needed: dict[Place, list[int]] = field(default_factory=dict)

    def lower(self, offers: Callable[[int], Iterator[Step]], goal: int) -> None:
        """Take what costs least at the peak, again and again, until the peak is at most `goal`.

        Or until nothing helps at the place where it then is; steps that did not lower the peak are
        taken back. O(steps · (positions + offers)).
        """
        best = 0
        self.peak = max(self.timeline, default=0)
        most_steps = min(_MOST_STEPS, 1 + _WORK // (len(self.timeline) + 1))
        while self.peak > goal and len(self.steps) < most_steps:
            at = self.timeline.index(self.peak)
            step = min(
                (s for s in offers(at) if self._is_open(s)), key=lambda s: s.price, default=None
            )
            if step is None:
                break
            self._apply(step, -1)
            self.steps.append(step)
            before, self.peak = self.peak, max(self.timeline)
            if self.peak < before:
                best = len(self.steps)
        for step in reversed(self.steps[best:]):
            self._apply(step, 1)
        del self.steps[best:]

    def _is_open(self, step: Step) -> bool:
        """Whether nothing that was taken before stands against a step, and it helps at once."""
        gap = step.gap
        if any(gap.before < time < gap.after for time in self._needed.get(step.place, ())):
            return False
        if any(
            g.before < gap.after < g.after
            for need in step.needs
            for g in self._given_up.get(need, ())
        ):
            return False
        if gap in self._given_up.get(step.place, ()):
            return False
        return not step.extra or self.timeline[gap.after] + step.extra < self.peak

    def _apply(self, step: Step, sign: int) -> None:
        gap, timeline = step.gap, self.timeline
        first, behind = gap.before + 1, gap.after
        change = sign * step.place.size
        timeline[first:behind] = [size + change for size in timeline[first:behind]]
        if step.extra:
            timeline[gap.after] -= sign * step.extra
        if sign < 0:
            self._given_up.setdefault(step.place, []).append(gap)
            for need in step.needs:
                self._needed.setdefault(need, []).append(gap.after)
