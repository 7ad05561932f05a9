"""The arrays that a program takes and gives, tuples taken apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.leaf_annotations import leaf_shardings
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.shapes.shape_size import shape_bytes


class Array(NamedTuple):
    """An array of a parameter or of the result."""

    instruction: Instruction
    number: int
    """Its place among all arrays, from 0."""
    shape: Shape
    sharding: str
    """As XLA prints it; empty where there is none."""

    @property
    def size(self) -> int:
        """Its bytes."""
        return shape_bytes(self.shape)


def arrays_of(instructions: Iterable[Instruction]) -> list[Array]:
    """The arrays in the shapes of instructions. O(arrays)."""
    found: list[Array] = []
    for instruction in instructions:
        shapes = list(instruction.shape.leaves())
        shardings = leaf_shardings(instruction) or [""] * len(shapes)
        for shape, sharding in zip(shapes, shardings, strict=True):
            found.append(Array(instruction, len(found), shape, sharding))
    return found
