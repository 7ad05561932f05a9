"""Whether the outputs of two runs are the same, other, or both possible by rounding alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hloopt.equivalence.measures import (
    Errors,
    Index,
    OutputErrors,
    Pair,
    allowed,
    errors_of,
    is_integral,
    loose_tolerance,
    other_type,
    shown,
    tight_tolerance,
    turned_zero,
)
from hloopt.equivalence.room import Room
from hloopt.equivalence.settings import Tolerance
from hloopt.interpreter.values import Array, type_text

_MARGIN = 8
"""The number of times what noise did another program may be off: noise is a sample, or a few."""
_INTEGER_MARGIN = 16
"""The same for the number of integers that it changed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first element at which an output differs."""

    name: str
    leaf: Index
    """The tuple index of the array; () where the result is one array."""
    index: Index | None
    """The element; None where the arrays differ in type or shape."""
    left: str
    right: str
    device: int
    seed: int
    count: int = 0
    """The number of elements of the array that differ, and of all."""
    total: int = 0
    error: float = 0.0
    """The largest absolute error of the array."""
    rounding: float | None = None
    """The difference that rounding alone makes, where that was looked at."""
    is_decided: bool = True
    """Whether it is more than rounding could do."""

    def describe(self) -> str:
        """The value found and the value expected."""
        if self.index is None:
            return f"{self.name} was {self.left}, it is {self.right}"
        place = f"{self.name}[{','.join(map(str, self.index))}]" if self.index else self.name
        return (
            f"{place} was {self.left}, it is {self.right}; "
            f"{self.count} of {self.total} elements differ"
        )


class Noise(NamedTuple):
    """The effect of rounding alone on an output."""

    largest: float = 0.0
    """The largest absolute error."""
    unequal: int = 0


Noises = dict[tuple[str, Index], Noise]


class Judge:
    """Compares outputs, and keeps how far each was off."""

    def __init__(
        self,
        tolerance: Tolerance | None,
        *,
        is_exact: bool,
        precision: float = 0.0,
        is_bitwise: bool = False,
    ) -> None:
        self._tolerance = tolerance
        self._is_bitwise = is_bitwise
        """Whether nothing may be rounded in another way, beside what our own sums do."""
        self._is_exact = is_exact
        self._precision = precision
        """Expected rounding error of the coarsest type that the programs compute in, as a fraction
        of the largest value."""
        self.errors: dict[tuple[str, Index], OutputErrors] = {}
        self.turned: str | None = None
        """The first zero with another sign, if that is not a difference."""

    def judge(
        self, pairs: Iterable[Pair], seed: int, noise: Callable[[], Noises], room: Room
    ) -> list[Difference]:
        """The differences in the outputs of a seed, in their order.

        `noise` is called at most once, if something is off more than the last few bits. Raises
        RunError where there is no `room` to compare.
        """
        found: list[Difference] = []
        suspects: list[tuple[Pair, Errors]] = []
        for pair in pairs:
            other = other_type(pair)
            if other:
                texts = type_text(pair.left), type_text(pair.right)
                found.append(
                    Difference(pair.name, pair.leaf, None, *texts, device=pair.device, seed=seed)
                )
                continue
            room.check(pair)
            errors = errors_of(pair.left, pair.right, signed_zeros=self._is_bitwise)
            if not self._is_bitwise and self.turned is None:
                self.turned = _turned(pair)
            key = pair.name, pair.leaf
            if key not in self.errors:
                self.errors[key] = OutputErrors(pair.name, pair.leaf, pair.type)
            self.errors[key].add(pair, errors, seed)
            if errors.unequal and self._is_off(pair, errors).any():
                suspects.append((pair, errors))
                room.keep(errors)
        if not suspects:
            return found
        if self._is_exact or self._tolerance is not None:
            found += [self._difference(p, e, self._is_off(p, e), seed) for p, e in suspects]
            return found
        noises = noise()
        for pair, errors in suspects:
            difference = self._weigh(
                pair, errors, noises.get((pair.name, pair.leaf), Noise()), seed
            )
            if difference is not None:
                found.append(difference)
        return found

    def _is_off(self, pair: Pair, errors: Errors) -> Array:
        """The elements that differ more than any two correct programs do."""
        if self._is_exact or self._is_bitwise or is_integral(pair.left):
            return np.asarray(errors.absolute > 0)
        if self._tolerance is not None:
            finite = np.where(np.isfinite(errors.sizes), errors.sizes, 0.0)
            return ~errors.within(self._tolerance.absolute + self._tolerance.relative * finite)
        return ~errors.within(allowed(errors, tight_tolerance(pair.left.dtype)))

    def _weigh(self, pair: Pair, errors: Errors, noise: Noise, seed: int) -> Difference | None:
        """The verdict on a difference in view of what rounding does."""
        own = self.errors[pair.name, pair.leaf]
        own.rounding = max(own.rounding or 0.0, noise.largest)
        off = self._is_off(pair, errors)
        if is_integral(pair.left):
            is_explained = 0 < errors.unequal <= _INTEGER_MARGIN * noise.unequal
            return self._difference(pair, errors, off, seed, noise, is_decided=not is_explained)
        beyond = off & ~errors.within(_MARGIN * noise.largest)
        if beyond.any():
            return self._difference(pair, errors, beyond, seed, noise)
        loose = allowed(errors, max(self._precision, loose_tolerance(pair.left.dtype)))
        if noise.largest > loose.max(initial=0.0):  # whatever is off, noise would explain it
            return self._difference(pair, errors, off, seed, noise, is_decided=False)
        far = ~errors.within(loose)
        if far.any():
            return self._difference(pair, errors, far, seed, noise, is_decided=False)
        return None

    def keeps_wide(self, leaf: Index) -> bool:
        """Whether an output may not be rounded to a narrow type on its way, but others may."""
        return False

    def why_not_decided(self, difference: Difference) -> str:
        """The reason why a difference may well be none."""
        return (
            "which rounding may explain: a unit in the last place of each operation moves it by "
            f"{shown(difference.rounding or 0)}."
        )

    def _difference(
        self,
        pair: Pair,
        errors: Errors,
        off: Array,
        seed: int,
        noise: Noise | None = None,
        *,
        is_decided: bool = True,
    ) -> Difference:
        worst = off if is_decided else np.where(off, errors.absolute, -1)  # the first, or largest
        index = tuple(map(int, np.unravel_index(np.argmax(worst), off.shape)))
        return Difference(
            pair.name,
            pair.leaf,
            tuple(i + o for i, o in zip(index, pair.offset, strict=True)),
            str(pair.left[index]),
            str(pair.right[index]),
            pair.device,
            seed,
            int(off.sum()),
            off.size,
            errors.largest,
            noise and noise.largest,
            is_decided,
        )


def _turned(pair: Pair) -> str | None:
    index = turned_zero(pair.left, pair.right)
    if index is None:
        return None
    place = f"[{','.join(str(i + o) for i, o in zip(index, pair.offset, strict=True))}]" * bool(
        index
    )
    return f"{pair.name}{place} was {pair.left[index]}, it is {pair.right[index]}"


def noise_of(plain: Iterable[Pair], room: Room) -> Noises:
    """The effect of rounding noise on each output: pairs of a plain and a disturbed run."""
    found: Noises = {}
    for pair in plain:
        room.check(pair)
        errors = errors_of(pair.left, pair.right)
        key = pair.name, pair.leaf
        known = found.get(key, Noise())
        found[key] = Noise(max(known.largest, errors.largest), max(known.unequal, errors.unequal))
    return found


def merged(noises: Sequence[Noises]) -> Noises:
    """The largest of what several runs with noise did."""
    found: Noises = {}
    for one in noises:
        for key, noise in one.items():
            known = found.get(key, Noise())
            found[key] = Noise(max(known.largest, noise.largest), max(known.unequal, noise.unequal))
    return found
