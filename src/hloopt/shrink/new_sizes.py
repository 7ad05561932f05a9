"""The new sizes of factors, dimensions and shapes."""

from __future__ import annotations

from collections.abc import Mapping

from hloopt.ir.shapes.leaves import element_range
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.shrink.factors import Factor, leaves, size_of
from hloopt.shrink.flow import Dimensions, Leaves


class NewSizes:
    """Sizes by factor that shrinks, looked up once for each array's dimensions."""

    def __init__(self, sizes: Mapping[Factor, int]) -> None:
        self._sizes = sizes
        self._known: dict[Dimensions, tuple[int, ...]] = {}

    def of(self, dimensions: Dimensions) -> tuple[int, ...]:
        """The new sizes of an array."""
        known = self._known.get(dimensions)
        if known is None:
            known = tuple([size_of((factor,), self._sizes) for factor in dimensions])
            self._known[dimensions] = known
        return known

    def size(self, factor: Factor) -> int:
        """The new size of a dimension, or of part of one."""
        return size_of((factor,), self._sizes)

    def shape(self, shape: Shape, dimensions: Leaves) -> Shape:
        """A shape with the new sizes, everything else as it was."""
        if shape.is_tuple:
            return tuple_shape(
                self.shape(element, dimensions[element_range(shape, number)])
                for number, element in enumerate(shape.elements)
            )
        numbers = self.of(dimensions[0])
        if numbers == shape.dimensions:
            return shape
        return array_shape(shape.type_name, numbers, shape.dynamic, shape.layout, shape.is_buffer)

    def moved(self, dimension: Factor, position: int) -> int:
        """A position that is at the beginning or the end of all factors that have new sizes."""
        moved, place = 0, 1
        for factor in reversed(leaves([dimension])):
            position, digit = divmod(position, factor.size)
            size = self.size(factor)
            moved += place * (digit if digit < factor.size - 1 else size - 1)
            place *= size
        return moved
