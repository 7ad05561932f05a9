"""Parts of arrays that are cut over the partitions of a program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hloopt.interpreter.values import Array
from hloopt.ir.attributes.values.shards import Shards


def covered(dimensions: Sequence[int], shards: Shards, partition: int) -> tuple[slice, ...] | None:
    """The slices of an array that a partition has; None where it has no part.

    Of a part that stands over the end, what is inside.
    """
    place = shards.places[partition]
    if place is None:
        return None
    sizes = shards.part(dimensions)
    return tuple(
        slice(min(number * size, n), min((number + 1) * size, n))
        for number, size, n in zip(place, sizes, dimensions, strict=True)
    )


def cut(array: Array, shards: Shards, partition: int) -> Array:
    """The part of an array that a partition has. Beyond the end of the array, and where a partition
    has no part at all, its values are arbitrary: those of the first element.

    All parts have one size: that of the first.
    """
    if shards.is_whole:
        return array
    inside = covered(array.shape, shards, partition)
    sizes = shards.part(array.shape)
    if inside is not None:
        found = array[inside]
        if found.shape == sizes:
            return found
    filler = array.reshape(-1)[0] if array.size else 0
    padded = np.full(sizes, filler, array.dtype)
    if inside is not None:
        padded[tuple(slice(n) for n in found.shape)] = found
    return padded
