"""Scans in two levels: rows of limited length, then what comes before each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hloopt.ir.attributes.values import PaddingDimension, Slice, Window, format_ints
from hloopt.ir.attributes.values.windows import WindowDimension
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.layout import layout_in_order
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.passes.rewriting.rules import Builder
from hloopt.passes.rewriting.rules.build import format_window


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of one dimension, by a commutative reducer to which `init` may be applied again."""

    dimension: int
    reducer: Computation
    init: Instruction
    is_reverse: bool = False
    """Whether each result combines the element at its place with those behind it."""
    is_exclusive: bool = False
    """Whether there is one result more, and none has the element at its place."""

    def window(self, rank: int, dimension: int, size: int, *, more: int = 0) -> dict[str, str]:
        """The attributes of a reduce-window that scans `size` elements; `more` results than these.

        `dimension` is the one scanned.
        """
        padding = size - 1 + more
        low, high = (0, padding) if self.is_reverse else (padding, 0)
        rows = [WindowDimension() for _ in range(rank)]
        rows[dimension] = WindowDimension(size, 1, low, high)
        return {"window": format_window(Window(tuple(rows)))}


def two_level_scan(build: Builder, x: Instruction, scan: Scan, length: int) -> Instruction:
    """The scan of `x`, by rows of `length` elements; the last one is filled up with `init`.

    Each row is scanned, then the last results of all rows, exclusively; the result for the rows
    before is combined with each element of a row. O(elements * length) steps in place of their
    square.
    """
    rank, size = x.shape.rank, x.shape.dimensions[scan.dimension]
    last = rank - 1
    order = list(range(rank))
    order[scan.dimension], order[last] = last, scan.dimension
    moved = x if scan.dimension == last else _transpose(build, x, order)
    filled = _fill(build, moved, scan.init, -size % length)
    count = filled.shape.dimensions[last] // length
    rows = build.reshape(filled, _split(filled.shape, count, length))
    scanned = build.make(
        "reduce-window", rows, scan.init, shape=rows.shape, called=(scan.reducer,),
        attributes=scan.window(rank + 1, rank, length),
    )  # fmt: skip
    before = _before_each(build, scanned, scan, filled.shape)
    spread = build.broadcast(before, range(rank), scanned.shape)
    combined = build.make(
        "map", scanned, spread, shape=scanned.shape, called=(scan.reducer,),
        attributes={"dimensions": format_ints(range(rank + 1))},
    )  # fmt: skip
    flat = build.reshape(combined, filled.shape)
    back = flat if scan.dimension == last else _transpose(build, flat, order)
    return _finish(build, back, scan, size)


def _before_each(build: Builder, scanned: Instruction, scan: Scan, whole: Shape) -> Instruction:
    """The results for all that comes before each row."""
    *outer, count, length = scanned.shape.dimensions
    rank = scanned.shape.rank - 1
    at = 0 if scan.is_reverse else length - 1
    kept = [Slice(0, size, 1) for size in (*outer, count)]
    ends = build.slice(scanned, [*kept, Slice(at, at + 1, 1)])
    totals = build.reshape(ends, _sized(whole, (*outer, count)))
    sums = build.make(
        "reduce-window", totals, scan.init, shape=_sized(whole, (*outer, count + 1)),
        called=(scan.reducer,), attributes=scan.window(rank, rank - 1, count, more=1),
    )  # fmt: skip
    first = 1 if scan.is_reverse else 0
    kept[-1] = Slice(first, first + count, 1)
    return build.slice(sums, kept)


def _finish(build: Builder, result: Instruction, scan: Scan, size: int) -> Instruction:
    """The results for the elements that were not filled up; one more for an exclusive scan."""
    sizes = list(result.shape.dimensions)
    if sizes[scan.dimension] != size:
        sizes[scan.dimension] = size
        result = build.slice(result, [Slice(0, s, 1) for s in sizes])
    if not scan.is_exclusive:
        return result
    padding = [PaddingDimension(0, 0, 0) for _ in sizes]
    one = (0, 1) if scan.is_reverse else (1, 0)
    padding[scan.dimension] = PaddingDimension(*one, 0)
    return build.pad(result, scan.init, padding)


def _fill(build: Builder, x: Instruction, init: Instruction, more: int) -> Instruction:
    if not more:
        return x
    padding = [PaddingDimension(0, 0, 0) for _ in range(x.shape.rank)]
    padding[-1] = PaddingDimension(0, more, 0)
    return build.pad(x, init, padding)


def _transpose(build: Builder, x: Instruction, order: list[int]) -> Instruction:
    """A transpose that exchanges two dimensions and moves no data: the layout follows."""
    sizes = tuple(x.shape.dimensions[d] for d in order)
    minor_to_major = tuple(order.index(d) for d in x.shape.layout.minor_to_major)
    return build.transpose(x, order, in_order(x.shape, sizes, minor_to_major))


def _split(shape: Shape, count: int, length: int) -> Shape:
    """The shape of rows: a new last dimension, which is the major-most one of the layout."""
    order = (*shape.layout.minor_to_major, shape.rank)
    return in_order(shape, (*shape.dimensions[:-1], count, length), order)


def _sized(shape: Shape, sizes: Iterable[int]) -> Shape:
    """The type and layout of a shape with other sizes."""
    return in_order(shape, sizes, shape.layout.minor_to_major)


def in_order(shape: Shape, sizes: Iterable[int], minor_to_major: tuple[int, ...]) -> Shape:
    """The type of a shape, as dense in memory, with other sizes and another order of dimensions."""
    layout = layout_in_order(minor_to_major)._replace(element_bits=shape.layout.element_bits)
    return array_shape(shape.type_name, tuple(sizes), layout=layout)
