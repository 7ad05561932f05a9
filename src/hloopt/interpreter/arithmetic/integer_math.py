"""Integer arithmetic by XLA's rules, on whole arrays of s8…s64 and u8…u64.

Where a function takes `bits`, values are of an integer type of that width, held in a type that may
be wider: s4 in s8. Results wrap around when they are narrowed to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hloopt.interpreter.values import Array


def divide(left: Array, right: Array) -> Array:
    """The quotient rounded towards zero: all bits set for a zero divisor, INT_MIN / -1 wraps."""
    is_zero = right == 0
    divisor = np.where(is_zero, _one(right), right)
    quotient = np.floor_divide(left, divisor)
    # NumPy rounds down: one more where signs differ and something is left.
    down = ((left < 0) != (divisor < 0)) & (quotient * divisor != left)
    return np.where(is_zero, ~np.zeros_like(right), quotient + down.astype(left.dtype))


def remainder(left: Array, right: Array) -> Array:
    """The remainder of `divide`, with the sign of the dividend: all of it for a zero divisor."""
    is_special = (right == 0) | ((right == -1) if right.dtype.kind == "i" else False)
    result = np.fmod(left, np.where(is_special, _one(right), right))
    return np.where(right == 0, left, result)


def power(base: Array, exponent: Array) -> Array:
    """`base` to the power of `exponent`, of which XLA:CPU takes six bits; wraps around.

    For a negative exponent that is 0, but for the bases 1 and -1. The highest bit of unsigned
    values counts as their sign.
    """
    result = np.ones(np.broadcast_shapes(base.shape, exponent.shape), base.dtype)
    factor, left = base, exponent & np.array(63, exponent.dtype)
    while left.any():  # once per bit
        result = np.where(left & 1, result * factor, result)
        factor, left = factor * factor, left >> 1
    signed_base, signed_exponent = _signed(base), _signed(exponent)
    return np.where((signed_exponent < 0) & (np.abs(signed_base) != 1), _zero(base), result)


def shift_left(bits: int, operand: Array, amount: Array) -> Array:
    """Zero for amounts that are negative or at least the width."""
    fits, amount = _fitting(bits, operand, amount)
    return np.where(fits, operand << amount, _zero(operand))


def shift_right_logical(bits: int, operand: Array, amount: Array) -> Array:
    """Zero for amounts that are negative or at least the width."""
    fits, amount = _fitting(bits, operand, amount)
    unsigned = _as_unsigned(bits, operand)
    return np.where(fits, unsigned >> amount.view(unsigned.dtype), _zero(unsigned))


def shift_right_arithmetic(bits: int, operand: Array, amount: Array) -> Array:
    """All bits like the sign's for amounts that are negative or at least the width.

    The highest bit of unsigned values counts as their sign, as in XLA.
    """
    fits, amount = _fitting(bits, operand, amount)
    signed = _sign_extended(bits, operand)
    amount = np.where(fits, amount, np.array(bits - 1, amount.dtype))
    return signed >> amount.view(signed.dtype)


def multiply_high(bits: int, left: Array, right: Array) -> Array:
    """The upper half of the product of twice the width."""
    if bits < 64:
        wide = np.int64 if left.dtype.kind == "i" else np.uint64
        return (left.astype(wide) * right.astype(wide)) >> np.array(bits, wide)
    high = _multiply_high_u64(_as_unsigned(64, left), _as_unsigned(64, right)).view(left.dtype)
    if left.dtype.kind == "i":  # -x counted as 2^64 - x: take the excess away
        high = high - np.where(left < 0, right, 0) - np.where(right < 0, left, 0)
    return high


def _multiply_high_u64(left: Array, right: Array) -> Array:
    """By halves of 32 bits: no partial sum below exceeds 64 bits."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    middle = (left >> half) * (right & low) + ((left & low) * (right & low) >> half)
    other = (left & low) * (right >> half) + (middle & low)
    return np.asarray((left >> half) * (right >> half) + (middle >> half) + (other >> half))


def count_ones(bits: int, operand: Array) -> Array:
    return _ones_of_unsigned(_as_unsigned(bits, operand))


def count_leading_zeros(bits: int, operand: Array) -> Array:
    smeared = _as_unsigned(bits, operand)
    shift = 1
    while shift < bits:  # all bits below the highest one become ones
        smeared = smeared | (smeared >> np.array(shift, smeared.dtype))
        shift *= 2
    return np.asarray(bits - _ones_of_unsigned(smeared))


def _ones_of_unsigned(numbers: Array) -> Array:
    """Ones per pair of bits, then per four bits, per byte, and of all bytes."""
    of_pairs, of_fours, of_bytes, one_each = (
        np.array(int(pattern * numbers.dtype.itemsize, 16), numbers.dtype)
        for pattern in ("55", "33", "0f", "01")
    )
    one, two, four = (np.array(shift, numbers.dtype) for shift in (1, 2, 4))
    numbers = numbers - (numbers >> one & of_pairs)
    numbers = (numbers & of_fours) + (numbers >> two & of_fours)
    numbers = numbers + (numbers >> four) & of_bytes
    return np.asarray(numbers * one_each >> np.array(8 * (one.itemsize - 1), one.dtype))


def _fitting(bits: int, operand: Array, amount: Array) -> tuple[Array, Array]:
    """A mask of the amounts below the width, and the amounts with 0 elsewhere."""
    fits = np.asarray(_as_unsigned(bits, amount) < bits)
    return fits, np.where(fits, amount, _zero(amount))


def _as_unsigned(bits: int, array: Array) -> Array:
    """The `bits` lowest bits as an unsigned number."""
    array = np.asarray(array)
    unsigned = array.view(_unsigned(array))
    if bits < 8:
        unsigned = unsigned & np.array((1 << bits) - 1, unsigned.dtype)
    return unsigned


def _sign_extended(bits: int, array: Array) -> Array:
    signed = _signed(array)
    if bits < 8:
        unused = np.array(8 - bits, np.int8)
        signed = (signed << unused) >> unused
    return signed


def _signed(array: Array) -> Array:
    return np.asarray(array).view(f"int{array.dtype.itemsize * 8}")


def _unsigned(array: Array) -> np.dtype[Any]:
    return np.dtype(f"uint{array.dtype.itemsize * 8}")


def _one(array: Array) -> Array:
    return np.ones((), array.dtype)


def _zero(array: Array) -> Array:
    return np.zeros((), array.dtype)
