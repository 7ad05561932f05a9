"""Units of figures: how numbers are written in expectations, and in messages about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from hloopt.reports.console.units import human_bytes, human_count, human_seconds, human_share

Number: TypeAlias = int | float


@dataclass(frozen=True, slots=True)
class Unit:
    """A kind of figure: the units that its numbers may have, by what each is times the base."""

    name: str
    """With its article: "a size"."""
    scales: Mapping[str, Fraction]
    is_bare: bool
    """Whether numbers need no unit; 0 never does."""
    text: Callable[[Number], str]
    """A figure as people read it, exact where that is not the same."""

    def scale(self, unit: str) -> Fraction | None:
        """The number of base units in a unit; None for one of another kind."""
        return Fraction(1) if not unit and self.is_bare else self.scales.get(unit)

    @property
    def units(self) -> str:
        """Its units in a list: `B, KiB, MiB`."""
        return ", ".join(self.scales)


def _powers(base: int, names: str, suffix: str = "") -> dict[str, Fraction]:
    return {f"{name}{suffix}": Fraction(base ** (n + 1)) for n, name in enumerate(names)}


def _count_text(number: Number) -> str:
    short = human_count(number)
    whole = f"{number:,}"
    return whole if " " not in short or len(whole) < 8 else f"{whole} ({short})"


def _bytes_text(number: Number) -> str:
    size = int(number)
    short = human_bytes(size)
    return short if short.endswith(" B") else f"{short} ({size:,} B)"


COUNT = Unit("a number", _powers(1000, "kMGTPE"), True, _count_text)
BYTES = Unit(
    "a size",
    {
        "B": Fraction(1),
        **_powers(1024, "KMGT", "iB"),
        **_powers(1000, "kMGT", "B"),
        "KB": Fraction(1000),
    },
    False,
    _bytes_text,
)
TIME = Unit(
    "a time",
    {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1)},
    False,
    human_seconds,
)
SHARE = Unit("a share", {"%": Fraction(1, 100)}, False, human_share)
UNITS = (COUNT, BYTES, TIME, SHARE)
"""All kinds of figures."""
