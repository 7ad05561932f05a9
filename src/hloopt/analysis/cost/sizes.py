"""How much memory traffic a whole shape is, and how many elements it has."""

from __future__ import annotations

from functools import cache

from hloopt.ir.instruction import Instruction
from hloopt.ir.shape import Shape
from hloopt.ir.shape_size import shape_bytes

table_bytes = cache(shape_bytes)
"""Bytes of the buffer itself: of a tuple, its table of pointers. What reading an operand counts."""


@cache
def leaf_bytes(shape: Shape) -> int:
    """Bytes of all arrays in `shape`, tables of pointers left out. What a result counts."""
    return sum(table_bytes(leaf) for leaf in shape.leaves())


@cache
def leaf_elements(shape: Shape) -> int:
    """Elements of all arrays in `shape`."""
    return sum(leaf.element_count() for leaf in shape.leaves() if leaf.is_array)


def bytes_of_operands(instruction: Instruction) -> tuple[int, ...]:
    """What reading every operand once in whole moves."""
    return tuple([table_bytes(operand.shape) for operand in instruction.operands])
