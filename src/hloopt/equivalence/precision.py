"""Judgement of programs that may round to narrow types at other places than each other.

The tolerance of an output comes from the types on its way. The first program runs with noise in
every operation that rounds, and with noise of half a unit in the last place of the narrowest type
that comes of it in every operation that could as well be rounded to that: through sums, products
and loops, as often as they run. An output may be off by a few times the effect of that, one with no
narrow type on its way by what roundings as they are do, whatever else is computed from the same.
"""

from __future__ import annotations

import numpy as np

from hloopt.equivalence.judgement import Difference, Judge, Noise
from hloopt.equivalence.measures import (
    Errors,
    Index,
    Pair,
    allowed,
    is_integral,
    tight_tolerance,
    unit_at,
)
from hloopt.equivalence.path_types import NARROW, PathTypes
from hloopt.equivalence.settings import Tolerance
from hloopt.interpreter.values import Array, dtype_of, float_info

MARGIN = 2
"""The number of times what noise did a program may be off."""
MOST = 0.1
"""The part of the largest value of an output that a tolerance may be: beyond it, being within says
nothing."""


class PrecisionJudge(Judge):
    """Compares outputs with a tolerance that the types on the way to them give."""

    def __init__(self, tolerance: Tolerance | None, types: PathTypes) -> None:
        super().__init__(tolerance, is_exact=False)
        self._types = types

    def keeps_wide(self, leaf: Index) -> bool:
        element = self._types.of_output(leaf)
        return element is None or element.bits >= NARROW

    def _is_off(self, pair: Pair, errors: Errors) -> Array:
        element = self._types.of_output(pair.leaf)
        if self._tolerance is not None or element is None or element.bits >= NARROW:
            return super()._is_off(pair, errors)
        return np.asarray(errors.absolute > 0)

    def _weigh(self, pair: Pair, errors: Errors, noise: Noise, seed: int) -> Difference | None:
        element = self._types.of_output(pair.leaf)
        if is_integral(pair.left) or element is None or element.bits >= NARROW:
            return super()._weigh(pair, errors, noise, seed)
        dtype = dtype_of(element)
        finite = np.where(np.isfinite(errors.sizes), errors.sizes, 0.0)
        size = float(finite.max(initial=0.0))
        wide = allowed(errors, tight_tolerance(np.dtype(np.float32)))
        least = float(float_info(dtype).smallest_subnormal) + float(wide.max(initial=0.0))
        unit = unit_at(size, dtype)
        tolerance = MARGIN * noise.largest + least
        if pair.left.dtype == dtype:
            tolerance = max(tolerance, unit)
        own = self.errors[pair.name, pair.leaf]
        own.rounding = max(own.rounding or 0.0, noise.largest)
        own.narrowest = element.name
        own.error_in_units = max(own.error_in_units or 0.0, errors.largest / unit)
        own.tolerance_in_units = max(own.tolerance_in_units or 0.0, tolerance / unit)
        beyond = ~errors.within(tolerance)
        if beyond.any():
            return self._difference(pair, errors, beyond, seed, noise)
        if tolerance > MOST * size:
            return self._difference(
                pair, errors, self._is_off(pair, errors), seed, noise, is_decided=False
            )
        return None

    def why_not_decided(self, difference: Difference) -> str:
        """The type and the tolerance that leave a difference open."""
        own = self.errors[difference.name, difference.leaf]
        if own.narrowest is None:
            return super().why_not_decided(difference)
        return (
            f"which roundings to {own.narrowest} on its way may explain: they may move it by "
            f"{own.tolerance_in_units:.2g} units in the last place of its largest value, more than "
            f"{MOST:.0%} of that: give inputs of your own with --input, or a tolerance with --rtol."
        )
