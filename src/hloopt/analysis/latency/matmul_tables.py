"""Measured throughputs of matrix products: XLA's tables, and files of users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from hloopt.analysis.cost.contraction import MULTIPLY_ADD
from hloopt.analysis.latency.model import TableTime
from hloopt.analysis.latency.smoothing import SmoothGrid
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.targets.performance import Tables

_COMMON = "bf16xbf16->bf16"
"""The throughputs that stand in for those of types that were not measured."""
_COMMON_BYTES = 2
"""The bytes of an element of their results."""


class Matmul(NamedTuple):
    """`b` products of m x k by k x n matrices, and the types of both and of what is written."""

    b: int
    m: int
    n: int
    k: int
    lhs: str
    rhs: str
    result: str

    @property
    def flops(self) -> int:
        return MULTIPLY_ADD * self.b * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """The bytes of both operands and the result."""
        lhs, rhs, result = (ELEMENT_TYPES[name].bytes for name in (self.lhs, self.rhs, self.result))
        parts = self.m * self.k * lhs, self.k * self.n * rhs, self.m * self.n * result
        return self.b * sum(parts)

    @property
    def in_bytes(self) -> Matmul:
        """The product with m, n and k in bytes of the result's elements, as XLA:GPU counts them
        where it has no measurements of its types."""
        size = ELEMENT_TYPES[self.result].bytes
        return self._replace(m=self.m * size, n=self.n * size, k=self.k * size)


class MatmulTable(ABC):
    """Throughputs of products."""

    @abstractmethod
    def time(self, matmul: Matmul) -> TableTime:
        """The time of a product, as XLA:GPU takes it from the table, and smoothed."""


class XlaMatmuls(MatmulTable):
    """A table of XLA: the throughput of the types of a product, or of `_COMMON`.

    Without its types XLA:GPU counts m, n and k in bytes of the result. So such a product is one of
    bf16 whose matrices are as many bytes high and wide: with an f32 result 8 times the flops.
    """

    def __init__(self, tables: Tables) -> None:
        self._sizes, self._rates = tables.matmul_sizes, tables.matmuls
        self._grids: dict[str, SmoothGrid] = {}

    def time(self, matmul: Matmul) -> TableTime:
        """O(1) but for the first of its types, which takes O(measurements)."""
        types = f"{matmul.lhs}x{matmul.rhs}->{matmul.result}"
        axes = [self._sizes[dimension] for dimension in "bmnk"]
        counted = matmul
        if types not in self._rates:
            types, counted = _COMMON, matmul.in_bytes
            axes = [axes[0], *([size * _COMMON_BYTES for size in axis] for axis in axes[1:])]
        measured = counted.flops / _interpolated(axes, self._rates[types], counted) * 1e6
        return TableTime(measured, self._grid(types, axes, counted is matmul).time(counted[:4]))

    def _grid(self, types: str, axes: Sequence[Sequence[int]], is_exact: bool) -> SmoothGrid:
        key = types if is_exact else ""
        if key not in self._grids:
            places = zip(product(*axes), self._rates[types], strict=True)
            times = [MULTIPLY_ADD * prod(place) / rate * 1e6 for place, rate in places]
            self._grids[key] = SmoothGrid(axes, times)
        return self._grids[key]


class UserMatmuls(MatmulTable):
    """Measurements of a user: as XLA:GPU takes them, that of the nearest product counts.

    The nearest is that at the least squared distance in b, and m, n and k in bytes of the result,
    whatever its types; of two as near the first. Such points make no grid, so they are not
    smoothed.
    """

    def __init__(self, measured: Iterable[tuple[Matmul, float]]) -> None:
        """`measured` with microseconds, in the order of the file; at least one."""
        self._points = [
            (counted[:4], counted.flops / time)
            for counted, time in ((matmul.in_bytes, time) for matmul, time in measured)
        ]

    def time(self, matmul: Matmul) -> TableTime:
        """O(measurements)."""
        counted = matmul.in_bytes
        _, rate = min(self._points, key=lambda point: _squared_distance(point[0], counted[:4]))
        time = counted.flops / rate
        return TableTime(time, time)


def _squared_distance(one: Sequence[int], other: Sequence[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _interpolated(axes: Sequence[Sequence[int]], rates: Sequence[int], matmul: Matmul) -> float:
    """The mean of the measured points around a product, near ones weighing more.

    Weights are 1 / (squared distance + 1); the distance counts beyond the measured sizes, too.
    """
    point = matmul[:4]
    strides = [prod(map(len, axes[number + 1 :])) for number in range(4)]
    around = [_around(size, axis) for size, axis in zip(point, axes, strict=True)]
    total = weights = 0.0
    for corner in product(*around):
        places = zip(corner, axes, point, strict=True)
        weight = 1 / (sum((axis[place] - size) ** 2 for place, axis, size in places) + 1)
        index = sum(place * stride for place, stride in zip(corner, strides, strict=True))
        total += weight * rates[index]
        weights += weight
    return total / weights


def _around(size: int, axis: Sequence[int]) -> tuple[int, ...]:
    """The places in ascending sizes of the nearest one below and above; one at the borders."""
    above = next((place for place, known in enumerate(axis) if known >= size), len(axis) - 1)
    if above == 0 or axis[above] <= size:
        return (above,)
    return above - 1, above
