"""Make single sizes of dimensions small, wherever they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar

from hloopt.ir.attributes.values import format_ints, parse_ints, parse_slices
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession

_SIZES = ("dynamic_slice_sizes", "slice_sizes")
"""Attributes that are sizes of dimensions."""


class LowerSizes:
    """Give all dimensions of a size another one, and what attributes say of it.

    It is tried, not derived: a module in which the sizes do not fit together does not verify.
    """

    what: ClassVar[Count] = Count(
        "size of dimensions made smaller", "sizes of dimensions made smaller"
    )
    one_by_one: ClassVar[bool] = False

    def __init__(self, size: int) -> None:
        self._size = size

    def parts(self, module: Module) -> Sequence[Hashable]:
        """The larger sizes, the most frequent first."""
        counts = Counter(
            size
            for instruction in module.instructions()
            for leaf in instruction.shape.leaves()
            for size in leaf.dimensions
        )
        return [size for size, _ in counts.most_common() if size > self._size]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Change shapes, slices, and the literals of constants that change their shape."""

        def smaller(size: int) -> int:
            return self._size if size in parts else size

        def changed(shape: Shape) -> Shape:
            if shape.is_tuple:
                return tuple_shape(map(changed, shape.elements))
            if not shape.is_array or not any(size in parts for size in shape.dimensions):
                return shape
            sizes = tuple(map(smaller, shape.dimensions))
            return array_shape(shape.type_name, sizes, shape.dynamic, shape.layout, shape.is_buffer)

        for instruction in session.module.instructions():
            shape = changed(instruction.shape)
            if shape is not instruction.shape:
                instruction.set_shape(shape)
                if instruction.opcode is Opcode.CONSTANT:
                    instruction.set_payload("0")
            for name in _SIZES:
                text = instruction.attribute(name)
                if text is not None:
                    sizes = format_ints(map(smaller, parse_ints(text)))
                    instruction.set_attribute(name, sizes)
            if instruction.opcode is Opcode.SLICE:
                _cut_slice(instruction)


def _cut_slice(instruction: Instruction) -> None:
    """Let a slice that takes more than its result has begin at 0 and end there."""
    sizes = instruction.shape.dimensions
    slices = parse_slices(instruction.attributes["slice"])
    if any(-(-(s.limit - s.start) // s.stride) != n for s, n in zip(slices, sizes, strict=True)):
        cut = ", ".join(f"[0:{size}]" for size in sizes)
        instruction.set_attribute("slice", f"{{{cut}}}")
