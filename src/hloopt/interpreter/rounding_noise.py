"""Rounding gone another way: what is rounded, disturbed by about a unit in the last place.

A program run with such noise shows how far another order of the same sums, another implementation
of `exp`, or intermediate results kept in more bits may move its outputs. What is exact is left
alone: counts, masks, sums of small numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod, sqrt
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from hloopt.interpreter.arithmetic.conversions import converted
from hloopt.interpreter.exactness import has_last_bits, is_inexact, rounds, sums_are_exact
from hloopt.interpreter.kernels import Function
from hloopt.interpreter.values import Array, Value, computing_type, float_info, widened
from hloopt.ir.attributes.typed import window_of
from hloopt.ir.attributes.values import parse_dim_labels, parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_POOL = 1 << 16
_SUMS = 4
"""Terms of mean 0 that are summed up one after the other have partial sums of up to their root mean
square times the square root of their number N, each of which is rounded: N over this, in all. Where
their mean is not 0, partial sums grow up to the whole sum: the error is the square root of N over
this, in units in the last place of it in the type that sums are made in."""


class MovableRoundings(NamedTuple):
    """The freedom of a program that may round to narrow types at other places."""

    types: Mapping[Instruction, np.dtype[Any]]
    """Operations whose results may as well be rounded to another type."""
    in_sums: bool = False
    """Whether each step of a sum may be rounded: where a reducing computation says so."""


class RoundingNoise:
    """Disturbs values, by another pattern for each `seed`.

    The pattern depends on the instruction and the value alone: devices that compute the same still
    do. `touches` says in which operations. With `movable` all that is not plainly exact counts as
    rounded, and sums as rounded once.
    """

    def __init__(
        self,
        seed: int,
        touches: Callable[[Instruction], bool] = rounds,
        movable: MovableRoundings | None = None,
    ) -> None:
        self._touches = touches
        self._movable = {} if movable is None else movable.types
        self._moves = movable is not None
        self._moves_in_sums = movable is not None and movable.in_sums
        signs = np.random.default_rng(seed).integers(0, 2, _POOL, dtype=np.int8)
        self._signs = signs * np.int8(2) - np.int8(1)

    def around(self, instruction: Instruction, kernel: Function) -> Function:
        """A kernel whose results are disturbed."""
        if instruction in self._movable:
            kernel = self._moving(self._movable[instruction], kernel)
        if not self._touches(instruction):
            return kernel
        terms = terms_of(instruction)

        def run(instruction: Instruction, *operands: Value) -> Value:
            value = kernel(instruction, *operands)
            if terms > 1:
                error = _error_of_sum(instruction, terms, operands)
                if not error:
                    return value
                if self._moves_in_sums and instruction.opcode in _REDUCTIONS:
                    value = self._moved_in_steps(instruction, value, terms)
                    return self._disturbed(instruction, value, error)
                return self._disturbed(instruction, value, error, _growth(instruction, terms))
            if isinstance(value, tuple) or not _can_be_disturbed(value.dtype):
                return self._disturbed(instruction, value)
            inexact = is_inexact(instruction, value, operands, by_bits=not self._moves)
            return self._stepped(instruction, value, inexact)

        return run

    def disturb(self, instruction: Instruction, value: Value) -> Value:
        """A value that no kernel gives: that of an argument, or one that devices have computed
        together."""
        if instruction in self._movable:
            value = self._moved(instruction, value, self._movable[instruction])
        return self._disturbed(instruction, value) if self._touches(instruction) else value

    def _moving(self, dtype: np.dtype[Any], kernel: Function) -> Function:
        def run(instruction: Instruction, *operands: Value) -> Value:
            value = kernel(instruction, *operands)
            if not isinstance(value, tuple) and value.dtype.kind in "iu":
                return self._moved_before_cut(instruction, value, dtype, operands)
            return self._moved(instruction, value, dtype)

        return run

    def _moved(self, instruction: Instruction, value: Value, dtype: np.dtype[Any]) -> Value:
        """A value off by half a unit in the last place of a type, where the type cannot hold it."""
        if isinstance(value, tuple):
            return tuple(self._moved(instruction, element, dtype) for element in value)
        if value is None or value.dtype.kind not in "fV" or value.dtype.itemsize <= dtype.itemsize:
            return value
        half = self._pattern(instruction, value) * np.float32(float_info(dtype).eps / 2)
        with np.errstate(all="ignore"):
            found = (value + np.abs(value) * half).astype(value.dtype)
            is_inexact = converted(converted(value, dtype), value.dtype) != value
        return np.where(is_inexact & np.isfinite(found), found, value)

    def _moved_before_cut(
        self,
        instruction: Instruction,
        value: Array,
        dtype: np.dtype[Any],
        operands: tuple[Value, ...],
    ) -> Array:
        """Integers that a sum was cut to after it was rounded to a type, off by half a unit in its
        last place there and by one at least, where the sum may not be the integer itself."""
        half = np.abs(value.astype(np.float64)) * float(float_info(dtype).eps / 2)
        found = value + self._pattern(instruction, value) * np.maximum(np.ceil(half), 1)
        limits = np.iinfo(value.dtype)
        is_held = (found >= limits.min) & (found <= limits.max)
        moves = is_held & ~_is_exact_before_cut(instruction, value, dtype, operands)
        return np.where(moves, found, value).astype(value.dtype)

    def _moved_in_steps(self, instruction: Instruction, value: Value, terms: int) -> Value:
        """Sums off by what rounding each step does where all terms have one sign: half a unit in
        the last place of the sum for each, of either sign."""
        if isinstance(value, tuple):
            return tuple(self._moved_in_steps(instruction, each, terms) for each in value)
        if not _can_be_disturbed(value.dtype) or value.dtype.kind == "c":
            return value
        narrow = self._movable.get(instruction, value.dtype)
        part = np.float32(sqrt(terms) / 2 * float(float_info(narrow).eps))
        moved = (value + self._pattern(instruction, value) * np.abs(value) * part).astype(
            value.dtype
        )
        return np.where(np.isfinite(moved), moved, value)

    def _disturbed(
        self, instruction: Instruction, value: Value, error: float = 0.0, growth: float = 0.0
    ) -> Value:
        """A value that is off by up to `error`, in units in the last place of 1, by `growth` of its
        own in the type that it is computed in, and by one of its own where its last bits tell that
        it was rounded."""
        if isinstance(value, tuple):
            return tuple(self._disturbed(instruction, each, error, growth) for each in value)
        if value is None or not _can_be_disturbed(value.dtype):
            return value
        if value.dtype.kind == "c":
            parts = np.asarray(value, order="C")[..., None].view(f"f{value.dtype.itemsize // 2}")
            parts = self._disturbed(instruction, parts, error, growth)
            return parts.view(value.dtype).reshape(value.shape)
        inexact = np.asarray(True) if self._moves else has_last_bits(value)
        if error:
            is_once = self._moves and not self._moves_in_sums
            wide = computing_type(value.dtype)
            unit = error * float(float_info(wide if is_once else value.dtype).eps)
            share = np.float32(growth * float(float_info(wide).eps))
            with np.errstate(all="ignore"):
                off = self._pattern(instruction, value) * (unit + np.abs(value) * share)
                moved = (value + off).astype(value.dtype)
            value = np.where(np.isfinite(moved), moved, value)
        return self._stepped(instruction, value, inexact)

    def _stepped(self, instruction: Instruction, value: Array, inexact: Array) -> Array:
        """The neighbours, up or down, of what is inexact."""
        if value.dtype.kind == "c":
            return np.asarray(self._disturbed(instruction, value))
        value = np.asarray(value, order="C")
        touched = inexact & np.isfinite(value) & (value != 0)
        if not touched.any():
            return value
        bits = value.view(f"i{value.dtype.itemsize}")
        moved = (bits + self._pattern(instruction, value)).astype(bits.dtype).view(value.dtype)
        return np.where(touched & np.isfinite(moved), moved, value)

    def _pattern(self, instruction: Instruction, value: Array) -> Array:
        """Signs in the shape of a value."""
        start = crc32(value.reshape(-1)[:16].tobytes(), crc32(instruction.name.encode())) % _POOL
        if value.size <= _POOL - start:
            return self._signs[start : start + value.size].reshape(value.shape)
        return np.resize(np.roll(self._signs, -start), value.size).reshape(value.shape)


def _can_be_disturbed(dtype: np.dtype[Any]) -> bool:
    """Whether neighbours of a number have neighbouring bits: floats in whole bytes."""
    return (
        dtype.kind in "fc"
        or dtype.name == "bfloat16"
        or (dtype.name.startswith("float8") and "e8m0" not in dtype.name)
    )


_REDUCTIONS = frozenset(
    (Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.SCATTER, Opcode.SELECT_AND_SCATTER)
)
_SOLVERS = frozenset(
    (
        *(Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE, Opcode.FFT, Opcode.BATCH_NORM_TRAINING),
        *(Opcode.BATCH_NORM_GRAD, Opcode.BATCH_NORM_INFERENCE),
    )
)


def terms_of(instruction: Instruction) -> int:
    """The most terms that an element of the result is a sum of."""
    opcode, attributes = instruction.opcode, instruction.attributes
    dimensions = [o.shape.dimensions for o in instruction.operands if o.shape.is_array]
    if opcode in (Opcode.DOT, Opcode.RAGGED_DOT, Opcode.SCALED_DOT):
        return prod(dimensions[0][d] for d in parse_ints(attributes.get(_CONTRACTING, "{}")))
    if opcode is Opcode.CONVOLUTION:
        labels = parse_dim_labels(attributes["dim_labels"])
        return prod(dimensions[1]) // max(1, dimensions[1][labels.kernel_output_feature_dimension])
    if opcode is Opcode.REDUCE_WINDOW:
        sizes = (dimension.size for dimension in window_of(instruction).dimensions)
        return min(prod(sizes), prod(dimensions[0])) + 1
    if opcode in _REDUCTIONS:
        results = max((leaf.element_count() for leaf in instruction.shape.leaves()), default=1)
        return max(prod(dimensions[0]) // max(1, results), 1) + (opcode is not Opcode.REDUCE)
    if opcode in _SOLVERS:
        return max(map(prod, dimensions), default=1)
    return 1


_CONTRACTING = "lhs_contracting_dims"


def _growth(instruction: Instruction, terms: int) -> float:
    """The error of sums of terms of one sign, in units in the last place of the sum; all are off by
    one such unit anyway. Solvers do not sum all that they read."""
    return 0.0 if instruction.opcode in _SOLVERS else max(sqrt(terms) / _SUMS - 1, 0.0)


def _error_of_sum(instruction: Instruction, terms: int, operands: tuple[Value, ...]) -> float:
    """The error that sums of products, or of elements, may have, in units in the last place of 1.

    0 where they are exact in any order.
    """
    summed = operands[: 2 if instruction.opcode in _OF_PRODUCTS else 1]
    if sums_are_exact(summed, terms):
        return 0.0
    size = 1.0
    for operand in summed:
        numbers = np.abs(operand).astype(np.float64)
        numbers = numbers[np.isfinite(numbers)]
        size *= sqrt(float(np.mean(numbers * numbers))) if numbers.size else 0.0
    return size * terms / _SUMS


_OF_PRODUCTS = (Opcode.DOT, Opcode.CONVOLUTION, Opcode.RAGGED_DOT)


def _is_exact_before_cut(
    instruction: Instruction, value: Array, dtype: np.dtype[Any], operands: tuple[Value, ...]
) -> Array:
    """The integers below which a type has all, where they are exact sums of products of integers.

    At the first integer that the type skips, a sum may have been rounded.
    """
    if instruction.opcode not in _OF_PRODUCTS:
        return np.zeros(value.shape, bool)
    factors = [widened(operand) for operand in operands[:2]]
    is_integral = all(np.array_equal(factor, np.trunc(factor)) for factor in factors)
    if not is_integral or not sums_are_exact(factors, terms_of(instruction)):
        return np.zeros(value.shape, bool)
    info = float_info(dtype)
    limit = min(2 / float(info.eps), np.floor(float(info.max)))
    return np.asarray(np.abs(value.astype(np.float64)) < limit)
