"""A robust fit of figures to measured times: medians, which few outliers move.

A sample takes the longest of its parts, each so many times as long as its figure says (the
*slowdown* of the figure), after a launch. Slowdowns are found in turns: each sample counts for the
figure that bounds it, whose slowdown is the median of what was measured over what it says; then the
bounds are looked at again. Samples weigh as much as the time that the target gives them: by the
measured time, what was slow by chance would weigh most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from statistics import median

from hloopt.analysis.calibration.samples import Name, Part, Sample

LEAST_SAMPLES = 3
"""Fewer instructions do not change a figure."""
_ROUNDS = 30
_MOST_PAIRS = 300
"""Samples of which all pairs are looked at."""
_LEAST_REST = 0.05
"""The share of a time that a launch leaves at least."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Slowdowns by figure, 1 for those that nothing was measured of, and the launch."""

    slowdowns: Mapping[Name, float] = field(default_factory=dict)
    launch: float | None = None
    """Seconds; None: as the target says."""

    def time(self, sample: Sample) -> float:
        """Seconds."""
        return self.launch_of(sample) + self.slowed(self.bound(sample))

    def bound(self, sample: Sample) -> Part:
        """The part that takes longest."""
        return max(sample.parts, key=self.slowed)

    def slowed(self, part: Part) -> float:
        """The seconds of a part."""
        return part.seconds * self.slowdowns.get(part.figure, 1.0)

    def launch_of(self, sample: Sample) -> float:
        """The seconds before what a sample does."""
        return sample.launch if self.launch is None or not sample.launch else self.launch


def fit(samples: Sequence[Sample]) -> Fit:
    """The slowdowns that fit best, after the launch that the target states or a fitted one.

    O(rounds · figures · samples), mostly O(rounds · samples).
    """
    fits = [_fit(samples, None)]
    if (launch := _launch([sample for sample in samples if sample.launch])) is not None:
        fits.append(_fit(samples, launch))
    return min(fits, key=lambda found: _loss(found, samples))


def _fit(samples: Sequence[Sample], launch: float | None) -> Fit:
    best = Fit(launch=launch)
    least = _loss(best, samples)
    for _ in range(_ROUNDS):
        medians = _medians(best, samples)
        # All at once, else those by themselves with which it fits better.
        steps = [medians, *({figure: median} for figure, median in medians.items())]
        is_better = False
        for step in steps:
            found = Fit({**best.slowdowns, **step}, launch)
            if (loss := _loss(found, samples)) < least:
                best, least, is_better = found, loss, True
                if step is medians:
                    break
        if not is_better:
            break
    return best


def _medians(before: Fit, samples: Sequence[Sample]) -> dict[Name, float]:
    """The slowdowns of figures that enough samples are bound by."""
    ratios: dict[Name, list[tuple[float, float]]] = {}
    for sample in samples:
        part = before.bound(sample)
        rest = max(sample.measured - before.launch_of(sample), sample.measured * _LEAST_REST)
        ratios.setdefault(part.figure, []).append((rest / part.seconds, part.seconds))
    return {
        figure: weighted_median(found)
        for figure, found in ratios.items()
        if len(found) >= LEAST_SAMPLES
    }


def _loss(found: Fit, samples: Iterable[Sample]) -> float:
    """The sum of errors in the logarithm, by the time that the target gives."""
    return sum(abs(log(found.time(sample) / sample.measured)) * sample.stated for sample in samples)


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """The value at which half of the weight is reached, of (value, weight > 0) pairs."""
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    reached = 0.0
    for value, weight in ordered:
        reached += weight
        if reached >= half:
            return value
    return ordered[-1][0]


def _launch(samples: Sequence[Sample]) -> float | None:
    """The time of a transfer of nothing, over the way that most samples take: where the median of
    the lines through two samples each begins. None where all have one size."""
    by_way: dict[Name, list[Sample]] = {}
    for sample in samples:
        by_way.setdefault(sample.parts[0].figure, []).append(sample)
    if not by_way:
        return None
    most = max(by_way.values(), key=len)
    most = most[:: -(-len(most) // _MOST_PAIRS)]
    points = sorted((sample.parts[0].seconds, sample.measured) for sample in most)
    slopes = [
        (right[1] - left[1]) / (right[0] - left[0])
        for number, left in enumerate(points)
        for right in points[number + 1 :]
        if right[0] > left[0]
    ]
    if len(points) < LEAST_SAMPLES or not slopes:
        return None
    slope = median(slopes)
    start = median(time - slope * seconds for seconds, time in points)
    return min(max(start, 0.0), points[0][1] * (1 - _LEAST_REST))
