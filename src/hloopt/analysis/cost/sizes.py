"""The memory traffic a whole shape is, and how many elements it has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, fold
from hloopt.ir.shapes.shape_size import shape_bytes

table_bytes = cache(shape_bytes)
"""Bytes of the buffer itself: of a tuple, its table of pointers. What reading an operand counts."""


def _over_leaves(measure: Callable[[Shape], int]) -> Callable[[Shape], int]:
    """The sum of `measure` over the arrays and tokens of a shape; each subshape is taken once."""
    known: dict[Shape, int] = {}

    def total(shape: Shape) -> int:
        found = known.get(shape)
        return fold(shape, measure, sum, known) if found is None else found

    return total


leaf_bytes = _over_leaves(shape_bytes)
"""Bytes of all arrays of a shape, tables of pointers left out. What writing a result counts."""
leaf_elements = _over_leaves(lambda leaf: leaf.element_count() if leaf.is_array else 0)
"""Elements of all arrays of a shape."""


def bytes_of_operands(instruction: Instruction) -> tuple[int, ...]:
    """The bytes moved if every operand is read once in whole."""
    return tuple([table_bytes(operand.shape) for operand in instruction.operands])
