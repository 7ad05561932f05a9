"""The outcome of comparing two modules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hloopt.equivalence.judgement import Difference
from hloopt.equivalence.measures import OutputErrors
from hloopt.interpreter.special_values import Special


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The reason why two modules were not found to compute the same."""

    reason: str
    """In a sentence, the values included."""
    seed: int | None = None
    """None where the modules do not take and give the same, or no one seed shows it."""
    device: int | None = None
    difference: Difference | None = None
    is_decided: bool = True
    """Whether they are different; False where they may well be the same."""
    special: Special | None = None
    """The special values on which alone they differ."""


@dataclass(slots=True)
class Comparison:
    """The findings about two modules."""

    mismatch: Mismatch | None = None
    """None where they are equal, as far as was compared."""
    outputs: list[OutputErrors] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """The parts that were not compared, in sentences."""
    seeds: int = 0
    """On how many ordinary inputs they ran."""
    specials: list[Special] = field(default_factory=list)
    """The kinds of special values that further inputs had."""
    on_specials: list[str] = field(default_factory=list)
    """Differences on special values alone, which are no mismatch, in sentences."""
    devices: tuple[int, int] = (0, 0)
    """The devices that ran the first module, and the second."""

    @property
    def nearest(self) -> OutputErrors | None:
        """The output nearest to its tolerance, of those whose precision a narrow type limits."""
        return nearest_of(self.outputs)


def nearest_of(outputs: Iterable[OutputErrors]) -> OutputErrors | None:
    """The one whose error is the largest part of its tolerance in ulps of its narrowest type."""
    limited = (o for o in outputs if o.error_in_units is not None and o.tolerance_in_units)
    return max(
        limited,
        key=lambda o: (o.error_in_units or 0.0) / (o.tolerance_in_units or 1.0),
        default=None,
    )
