"""Integers that are ordered like other values."""

from __future__ import annotations

import numpy as np

from hloopt.interpreter.values import Array, computing_type, widened


def total_order_key(array: Array) -> Array:
    """Integers that are ordered as IEEE 754's totalOrder orders `array`, a few passes over it.

    That is -NaN < -inf < negative < -0 < +0 < positive < inf < NaN.
    """
    if computing_type(array.dtype).kind in "biu":
        return widened(array)
    if array.dtype.itemsize == 1:  # some keep their sign elsewhere, or have no negative zero
        array = array.astype(np.float32)
    width = array.dtype.itemsize * 8
    bits = array.view(f"int{width}")
    # The bits of a negative float count upwards from -0: turn all but the sign around.
    return np.asarray(bits ^ ((bits >> (width - 1)) & np.array(2 ** (width - 1) - 1, bits.dtype)))
