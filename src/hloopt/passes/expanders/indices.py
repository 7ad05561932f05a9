"""The indices of gathers and scatters in a simple form, and what both need to get there."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hloopt.ir.attributes.values import format_ints, parse_int, parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.layout import default_layout
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.passes.rewriting.rules import Builder
from hloopt.passes.simplification.algsimp.shapes import is_identity


def ints(instruction: Instruction, name: str) -> tuple[int, ...]:
    """A list attribute; empty where it is absent."""
    return parse_ints(instruction.attributes.get(name, "{}"))


def vector_dimension(instruction: Instruction) -> int:
    """The `index_vector_dim` of a gather or scatter: the rank of the indices where implicit."""
    return parse_int(instruction.attributes.get("index_vector_dim", "0"))


def set_ints(instruction: Instruction, lists: dict[str, Sequence[int]]) -> None:
    """Set list attributes."""
    for name, numbers in lists.items():
        instruction.set_attribute(name, format_ints(numbers))


def resized(shape: Shape, sizes: Sequence[int]) -> Shape:
    """A shape with other sizes in the default layout, as dense in memory as it was."""
    layout = default_layout(len(sizes))._replace(element_bits=shape.layout.element_bits)
    return array_shape(shape.type_name, tuple(sizes), layout=layout)


def reshaped(build: Builder, operand: Instruction, sizes: Sequence[int]) -> Instruction:
    """A reshape to these sizes, with the operand's metadata; the operand where it has them."""
    if operand.shape.dimensions == tuple(sizes):
        return operand
    return _told(build.reshape(operand, resized(operand.shape, sizes)), operand)


def transposed(build: Builder, operand: Instruction, order: Sequence[int]) -> Instruction:
    """A transpose, with the operand's metadata; the operand where nothing moves."""
    if is_identity(order):
        return operand
    shape = operand.shape
    sizes = [shape.dimensions[d] for d in order]
    return _told(build.transpose(operand, order, resized(shape, sizes)), operand)


def _told(made: Instruction, operand: Instruction) -> Instruction:
    """An instruction made of an operand, with the metadata of that."""
    if "metadata" in operand.attributes:
        made.set_attribute("metadata", operand.attributes["metadata"])
    return made


def index_sizes(indices: Shape, vector: int) -> tuple[int, ...]:
    """The sizes of the indices without the index vector."""
    return tuple([size for d, size in enumerate(indices.dimensions) if d != vector])


def matrix_of_indices(build: Builder, indices: Instruction, vector: int) -> Instruction:
    """The indices as [N, index vector]: its dimension last, all others joined."""
    rank = indices.shape.rank
    if vector == rank:
        indices = reshaped(build, indices, (*indices.shape.dimensions, 1))
    else:
        order = [*[d for d in range(rank) if d != vector], vector]
        indices = transposed(build, indices, order)
    *outer, last = indices.shape.dimensions
    return reshaped(build, indices, (prod(outer), last))


def places_of_windows(gather: Instruction, outer: int, windows: int) -> list[int]:
    """The order that takes window dimensions from the end to where the gather has them."""
    offsets = ints(gather, "offset_dims")
    left = iter(range(outer))
    order = [-1] * (outer + windows)
    for number, place in enumerate(offsets):
        order[place] = outer + number
    return [next(left) if d < 0 else d for d in order]
