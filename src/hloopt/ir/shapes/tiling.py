"""Arrays in tiled layouts `T(…)`: dimensions are padded to whole tiles."""

from __future__ import annotations

from math import prod

from hloopt.ir.shapes.shape import Shape


def padded_count(array: Shape) -> int:
    """The elements of an array and its padding.

    The minor-most dimensions are rounded up to the first tile, and the product of all to the tail
    padding. Tiles in tiles add nothing; a tile pads no dimension that the array lacks.
    """
    count = prod(padded_dimensions(array))
    multiple = max(array.layout.tail_padding, 1)
    return -(-count // multiple) * multiple


def padded_dimensions(array: Shape) -> list[int]:
    """The dimensions of an array, from minor to major, rounded up to its first tile.

    Where the tile has a `*`, a dimension is one with the next smaller one.
    """
    layout = array.layout
    sizes = [array.dimensions[number] for number in layout.minor_to_major]
    if not layout.tiles:
        return sizes
    tile = layout.tiles[0].strip("()").split(",")[::-1]
    tiled: list[tuple[int, int]] = []
    for size, length in zip(sizes, tile, strict=False):
        if length == "*" and tiled:
            minor, multiple = tiled[-1]
            tiled[-1] = minor * size, multiple
        else:
            tiled.append((size, int(length) if length.isdecimal() else 1))
    padded = [-(-size // multiple) * multiple if multiple else size for size, multiple in tiled]
    return padded + sizes[len(tile) :]
