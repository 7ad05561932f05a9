"""The time by flops per byte, and what was reached where times are measured.

The least time of an instruction is the bound of the roofline itself: by that time every instruction
would lie on the roof. So it is a share of the time at an intensity that says something, and points
below the roof are drawn of measured times only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, floor, log10
from typing import NamedTuple

from hloopt.reports.console.units import human_count
from hloopt.reports.cost.findings import CostReport, CostRow
from hloopt.targets import Target

PER_DECADE = 4
"""Bins of intensity."""
_DECADES_LEFT = 4  # of the ridge: what computes less for its bytes is in the first bin


def intensity_of(row: CostRow) -> float:
    """Flops and transcendentals per byte of one run; 0 where nothing is computed."""
    cost = row.cost
    return (cost.flops + cost.transcendentals) / max(cost.bytes_accessed, 1)


@dataclass(slots=True)
class Bin:
    """Instructions of about one intensity."""

    left: float
    """Flops per byte at least, and less than at `right`."""
    right: float
    rows: list[CostRow] = field(default_factory=list)
    """Most time first."""
    compute_seconds: float = 0.0
    """The least time of those bound by arithmetic."""
    memory_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        return self.compute_seconds + self.memory_seconds

    def add(self, row: CostRow) -> None:
        self.rows.append(row)
        if row.bound.is_compute:
            self.compute_seconds += row.seconds
        else:
            self.memory_seconds += row.seconds


class Point(NamedTuple):
    """An instruction whose time is measured."""

    intensity: float
    rate: float
    """Flops and transcendentals per second that it reached."""
    seconds: float
    """Measured, of all runs."""
    row: CostRow

    @property
    def share_of_bound(self) -> float:
        """Of the least rate that the roofline allows it; above 1 the file or the target is not of
        this module."""
        return self.row.seconds / self.seconds


@dataclass(slots=True)
class Intensities:
    """The instructions of a report by flops per byte."""

    target: Target
    idle: Bin
    """Instructions that move data and compute nothing."""
    bins: list[Bin]
    """Without gaps, `PER_DECADE` to a decade, from left to right."""
    points: list[Point]
    """Most time first; empty where nothing is measured."""

    @classmethod
    def of(cls, report: CostReport) -> Intensities:
        """O(instructions)."""
        target = report.hardware
        peak = peak_of(target)
        ridge = log10(peak / target.memory_bandwidth)
        idle = Bin(0.0, 0.0)
        computing = []
        for row in report.rows:
            if intensity_of(row) > 0:
                computing.append(row)
            else:
                idle.add(row)
        powers = [log10(intensity_of(row)) for row in computing]
        left = floor(max(min([*powers, ridge - 2]), ridge - _DECADES_LEFT))
        right = max(ceil(max([*powers, ridge + 1]) * PER_DECADE) / PER_DECADE, left + 1)
        count = round((right - left) * PER_DECADE) + 1
        edges = [10 ** (left + number / PER_DECADE) for number in range(count + 1)]
        bins = [Bin(*pair) for pair in pairwise(edges)]
        for row, power in zip(computing, powers, strict=True):
            number = floor((power - left) * PER_DECADE)
            bins[min(max(number, 0), len(bins) - 1)].add(row)
        while len(bins) > 1 and not bins[-1].rows and bins[-1].left > 10 ** (ridge + 1):
            bins.pop()
        return cls(target, idle, bins, list(_points(report, computing)))

    @property
    def left(self) -> float:
        """The edge of the picture, as a power of ten."""
        return log10(self.bins[0].left)

    @property
    def right(self) -> float:
        return log10(self.bins[-1].right)

    @property
    def highest_share(self) -> float:
        """Of the time of all, the largest part that lies in one bin."""
        found = [self.idle, *self.bins]
        whole = sum(each.seconds for each in found)
        return max(each.seconds for each in found) / whole if whole else 0.0


def peak_of(target: Target) -> float:
    """The highest rate of a target for bf16 and f32."""
    rates = (target.matrix_rate("bf16"), target.vector_rate("f32"), 1.0)
    return max(rate for rate in rates if rate)


def _points(report: CostReport, rows: Iterable[CostRow]) -> Iterator[Point]:
    measured = report.measured
    if measured is None:
        return
    found = []
    for row in rows:
        seconds = measured.seconds.get(row.name, 0.0)
        if seconds > 0:
            work = row.cost.flops + row.cost.transcendentals
            total = seconds * row.runs.times
            found.append(Point(intensity_of(row), work / seconds, total, row))
    yield from sorted(found, key=lambda point: -point.seconds)


def ceilings(target: Target) -> dict[float, str]:
    """The rates of a target, each with the units that reach it and the types they reach it for."""
    found: dict[float, list[str]] = {}
    for kind, rates in (("matrix", target.matrix), ("vector", target.vector)):
        names: dict[float, list[str]] = {}
        for name, rate in rates.items():
            names.setdefault(rate, []).append(name)
        for rate, types in names.items():
            found.setdefault(rate, []).append(f"{kind} {' '.join(types)}")
    return {rate: f"{', '.join(names)}: {human_count(rate)}" for rate, names in found.items()}
