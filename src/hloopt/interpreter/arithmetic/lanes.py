"""NumPy's functions over the lanes of an array, a part at a time: a deadline is looked at between.

A lane is a line of elements along the last dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hloopt.interpreter.limits import Tick
from hloopt.interpreter.values import Array

_PART = 1 << 20
"""Elements that are sorted or transformed at a time: part of a second."""


def by_parts(function: Callable[[Array], Array], array: Array, tick: Tick) -> Array:
    """`function`, which does the same to each lane, of some lanes at a time."""
    if tick is None or array.size <= _PART or array.ndim == 1:
        return function(array)
    lanes = array.reshape(-1, array.shape[-1])
    step = max(_PART // lanes.shape[1], 1)
    parts = []
    for start in range(0, len(lanes), step):
        tick()
        parts.append(function(lanes[start : start + step]))
    joined = np.concatenate(parts)
    return joined.reshape(*array.shape[:-1], *joined.shape[1:])


def stable_order(values: Array, tick: Tick) -> np.ndarray[Any, np.dtype[np.intp]]:
    """The order that sorts each lane, equal elements as they are; what is not a number last."""
    return by_parts(lambda lanes: _order(lanes, tick), values, tick)


def _order(lanes: Array, tick: Tick) -> Array:
    """Of long lanes the order of each part, then of neighbouring parts together: NumPy merges what
    is in order already in linear time."""
    size = lanes.shape[-1]
    if tick is None or size <= _PART:
        return np.argsort(lanes, -1, kind="stable")
    order = np.empty(lanes.shape, np.intp)
    order[...] = np.arange(size)
    width = _PART
    while width < 2 * size:
        for start in range(0, size, width):
            tick()
            part = order[..., start : start + width]
            keys = np.take_along_axis(lanes, part, -1)
            part[...] = np.take_along_axis(part, np.argsort(keys, -1, kind="stable"), -1)
        width *= 2
    return order
