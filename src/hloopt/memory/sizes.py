"""The parts of a tuple, numbered, and how many bytes each takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hloopt.ir.shape import Shape
from hloopt.ir.shape_size import shape_bytes


@dataclass(frozen=True, slots=True)
class Slots:
    """The parts of a shape in pre-order, numbered from 0 (the whole shape).

    The parts below one tuple element have consecutive numbers.
    """

    shape: Shape
    sizes: tuple[int, ...]  # bytes
    is_tuple: tuple[bool, ...]
    memory_spaces: tuple[int, ...]
    element_starts: tuple[int, ...]
    """Where each element of the outermost tuple begins, then the number of slots."""

    @property
    def indices(self) -> tuple[tuple[int, ...], ...]:
        """The shape index of each slot. As long as the shape is deep, so not kept for all."""
        return _indices(self.shape)

    def element(self, number: int) -> slice:
        """The slots of one element of the outermost tuple."""
        return slice(self.element_starts[number], self.element_starts[number + 1])


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
    return Slots(
        shape,
        tuple(map(shape_bytes, parts)),
        tuple(part.is_tuple for part in parts),
        tuple(part.layout.memory_space for part in parts),
        (*starts, len(parts)),
    )


@lru_cache(maxsize=64)
def _indices(shape: Shape) -> tuple[tuple[int, ...], ...]:
    return tuple(index for index, _ in shape.subshapes())


def slot_at(slots: Slots, index: tuple[int, ...]) -> int | None:
    """The number of the slot at a shape index, or None. O(number of slots)."""
    return slots.indices.index(index) if index in slots.indices else None
