"""Slots: the parts of a shape, numbered, so that shape indices are small integers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hloopt.ir.shapes.shape import Shape

Index = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The parts of a shape in pre-order, numbered from 0 (the whole shape).

    The parts below one tuple element have consecutive numbers.
    """

    shape: Shape
    parts: tuple[Shape, ...]
    element_starts: tuple[int, ...]
    """The first slot of each element of the outermost tuple, then the number of slots."""

    @property
    def indices(self) -> tuple[Index, ...]:
        """The shape index of each slot. As long as the shape is deep, so not kept for all."""
        return _indices(self.shape)

    def element(self, number: int) -> slice:
        """The slots of one element of the outermost tuple."""
        return slice(self.element_starts[number], self.element_starts[number + 1])

    def at(self, index: Index) -> int | None:
        """The number of the slot at a shape index, or None. O(length of the index)."""
        slot, slots = 0, self
        for number in index:
            if number >= len(slots.shape.elements):
                return None
            slot += slots.element_starts[number]
            slots = slots_of(slots.shape.elements[number])
        return slot


@lru_cache(maxsize=1 << 16)
def slots_of(shape: Shape) -> Slots:
    """The slots of `shape`. O(number of subshapes), once per shape."""
    parts: list[Shape] = []
    starts: list[int] = []
    stack = [(0, shape)]
    while stack:
        depth, part = stack.pop()
        if depth == 1:
            starts.append(len(parts))
        parts.append(part)
        stack += [(depth + 1, element) for element in reversed(part.elements)]
    return Slots(shape, tuple(parts), (*starts, len(parts)))


@lru_cache(maxsize=64)
def _indices(shape: Shape) -> tuple[Index, ...]:
    shape.check_depth()
    return tuple(index for index, _ in shape.subshapes())
