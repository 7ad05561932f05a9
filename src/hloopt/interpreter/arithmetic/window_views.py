"""Windows over arrays: padding, and the elements at each place of a window, without copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hloopt.interpreter.values import Array
from hloopt.ir.attributes.values import PaddingDimension, WindowDimension


def pad(array: Array, padding: Sequence[PaddingDimension], fill: Array) -> Array:
    """An array with `fill` around and between its elements. Negative padding cuts them off."""
    if not any(edge.low or edge.high or edge.interior for edge in padding):
        return array
    sizes, targets, sources = [], [], []
    for extent, edge in zip(array.shape, padding, strict=True):
        size, step = max(padded_size(extent, edge), 0), edge.interior + 1
        first = max(-(edge.low // step), 0)  # the first element that is not cut off
        start = edge.low + first * step
        count = max(min(extent - first, -((start - size) // step)), 0)
        sizes.append(size)
        targets.append(slice(start, start + count * step, step))
        sources.append(slice(first, first + count))
    padded = np.full(sizes, fill, array.dtype)
    padded[tuple(targets)] = array[tuple(sources)]
    return padded


def padded_size(extent: int, edge: PaddingDimension) -> int:
    """The number of elements a dimension has with its padding; negative where that cuts off
    more."""
    return max(extent - 1, 0) * (edge.interior + 1) + min(extent, 1) + edge.low + edge.high


def pad_base(array: Array, window: Sequence[WindowDimension], fill: Array) -> Array:
    """An array with `fill` between its elements (base dilation) and around them."""
    return pad(
        array, [PaddingDimension(d.pad_low, d.pad_high, d.lhs_dilate - 1) for d in window], fill
    )


def dilated_size(extent: int, dimension: WindowDimension) -> int:
    """The number of elements a dimension of the base has with those between them."""
    return (extent - 1) * dimension.lhs_dilate + 1 if extent else 0


def span_of(dimension: WindowDimension) -> int:
    """The number of elements a window reaches over, its dilation included."""
    return (dimension.size - 1) * dimension.rhs_dilate + 1 if dimension.size else 0


def count_places(extent: int, dimension: WindowDimension) -> int:
    """At how many places a window fits in a padded dimension."""
    room = extent - span_of(dimension)
    return room // dimension.stride + 1 if room >= 0 else 0


def windows_over(padded: Array, window: Sequence[WindowDimension]) -> Array:
    """The elements under the window: a view, places first and then places within the window."""
    counts = [count_places(size, d) for size, d in zip(padded.shape, window, strict=True)]
    if not all(counts):
        return np.empty((*counts, *(d.size for d in window)), padded.dtype)
    raw = padded.view(f"V{padded.itemsize}")  # f8e5m2 is no type that NumPy can make views of
    view = sliding_window_view(raw, tuple(map(span_of, window)))
    places = tuple(slice(None, None, d.stride) for d in window)
    within = tuple(slice(None, None, d.rhs_dilate) for d in window)
    return view[places + within].view(padded.dtype)
