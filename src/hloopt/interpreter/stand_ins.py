"""Made-up functions in place of custom calls that nobody can compute, and made-up constants.

Two modules that make the same calls with the same values then get the same results, and most likely
others where target or values differ: enough to compare programs, no more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hloopt.interpreter.arithmetic.conversions import converted
from hloopt.interpreter.values import Array, Value, arrays_of, dtype_of_shape, make_value
from hloopt.ir.shapes.shape import Shape

_WEIGHT = np.float32(0.375)


def stand_in(target: str, shape: Shape, operands: Sequence[Value]) -> Value:
    """A value of `shape` that depends on target, operands and position. O(elements).

    A weighted sum of all elements and a number for the name, plus the index in the last dimension;
    computed in f32 and converted to the type. Whether it is positive for pred.
    """
    total: np.float32 | None = None
    for operand in arrays_of(tuple(operands)):
        own = np.float32(converted(operand, np.dtype(np.float32)).sum(dtype=np.float64))
        total = own if total is None else total * _WEIGHT + own
    name = sum((number + 1) * ord(letter) for number, letter in enumerate(target)) % 97 / 16
    base = np.float32(name) if total is None else total + np.float32(name)

    def make(leaf: Shape) -> Array:
        last = np.arange(leaf.dimensions[-1] if leaf.dimensions else 1, dtype=np.float32)
        values = (base + last).reshape(leaf.dimensions[-1:])
        if leaf.type_name == "pred":
            return np.broadcast_to(values > 0, leaf.dimensions)
        return np.broadcast_to(converted(values, dtype_of_shape(leaf)), leaf.dimensions)

    return make_value(shape, make)


def made_up_constant(shape: Shape) -> Value:
    """Values for a constant that was printed as `{...}`: small numbers, the same for equal shapes.

    O(elements).
    """

    def make(leaf: Shape) -> Array:
        numbers = np.arange(leaf.element_count()) * 5 % 7 - 3  # no order, no sign, some repeated
        return converted(numbers.reshape(leaf.dimensions), dtype_of_shape(leaf))

    return make_value(shape, make)
