"""Loops over the indices of gathers and scatters, and what each of their trips computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from hloopt.ir.attributes.values import PaddingDimension, Slice
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.passes.expanders.indices import index_sizes
from hloopt.passes.rewriting.rules import Builder
from hloopt.passes.rewriting.rules.constants import integer_range
from hloopt.passes.simplification.algsimp.shapes import inverse

MOST_TRIPS = (1 << 31) - 1
_S32 = array_shape("s32")


def counted_loop(
    build: Builder,
    trips: int,
    state: Sequence[Instruction],
    step: Callable[[Builder, Instruction, list[Instruction]], list[Instruction]],
    like: Instruction,
) -> list[Instruction]:
    """The state after so many trips of a while loop with an s32 counter.

    `step` makes the state after a trip of the counter and the state before it. The loop has the
    metadata of `like`.
    """
    module = build.computation.module
    shape = tuple_shape([_S32, *[value.shape for value in state]])
    condition = Builder(module.add_computation("while_cond"))
    counter = _element(condition, condition.make("parameter", shape=shape, payload="0"), 0)
    more = condition.compare("LT", counter, condition.scalar(trips, _S32))
    condition.computation.set_root(more)
    body = Builder(module.add_computation("while_body"))
    parameter = body.make("parameter", shape=shape, payload="0")
    counter = _element(body, parameter, 0)
    after = body.add(counter, body.scalar(1, _S32))
    before = [_element(body, parameter, number) for number in range(1, len(state) + 1)]
    body.computation.set_root(body.make("tuple", after, *step(body, counter, before)))
    start = build.make("tuple", build.scalar(0, _S32), *state)
    loop = build.make("while", start, shape=shape, called=(body.computation, condition.computation))
    if "metadata" in like.attributes:
        loop.set_attribute("metadata", like.attributes["metadata"])
    return [_element(build, loop, number) for number in range(1, len(state) + 1)]


def _element(build: Builder, value: Instruction, number: int) -> Instruction:
    shape = value.shape.elements[number]
    return build.make("get-tuple-element", value, shape=shape, attributes={"index": str(number)})


class BatchPositions:
    """The positions in batching dimensions, which the number of a trip says."""

    def __init__(
        self, indices: Shape, vector: int, dimensions: Sequence[int], of_indices: Sequence[int]
    ) -> None:
        """`dimensions` of the operand are batching ones, and so are those `of_indices`."""
        outer = [d for d in range(indices.rank) if d != vector]
        sizes = index_sizes(indices, vector)
        places = [outer.index(d) for d in of_indices]
        self._steps = {
            d: (prod(sizes[place + 1 :]), sizes[place] if place else 0)
            for d, place in zip(dimensions, places, strict=True)
        }

    def make(self, build: Builder, counter: Instruction, type_name: str) -> dict[int, Instruction]:
        """By dimension of the operand the position in it, as a vector of one index."""
        found = {}
        for dimension, (divisor, size) in self._steps.items():
            value = counter
            if divisor > 1:
                value = build.divide(value, build.scalar(divisor, _S32))
            if size:
                value = build.binary("remainder", value, build.scalar(size, _S32))
            found[dimension] = vector_of(build, build.convert(value, type_name))
        return found


def vector_of(build: Builder, scalar: Instruction) -> Instruction:
    """A scalar as a vector of one element."""
    return build.broadcast(scalar, (), array_shape(scalar.shape.type_name, (1,)))


def operand_index(
    build: Builder,
    vector: Instruction,
    indexed: Sequence[int],
    positions: Mapping[int, Instruction],
    rank: int,
) -> Instruction:
    """An index for each dimension of the operand: from the index vector, a position, or 0."""
    parts: list[Instruction] = []
    zero: Instruction | None = None
    for dimension in range(rank):
        if dimension in indexed:
            place = indexed.index(dimension)
            parts.append(build.slice(vector, [Slice(place, place + 1, 1)]))
        elif dimension in positions:
            parts.append(positions[dimension])
        else:
            zero = zero or constant_vector(build, [0], vector.shape.type_name)
            parts.append(zero)
    if not parts:
        return constant_vector(build, [], vector.shape.type_name)
    return build.concatenate(parts, 0)


def constant_vector(build: Builder, numbers: Sequence[int], type_name: str) -> Instruction:
    """A vector of these integers."""
    return build.make(
        "constant",
        shape=array_shape(type_name, (len(numbers),)),
        payload=f"{{{', '.join(map(str, numbers))}}}",
    )


def holding(build: Builder, indices: Instruction, largest: int) -> Instruction:
    """Indices in a type that holds a number: s32, or s64, where their own does not."""
    kind = indices.shape.element_type
    assert kind is not None
    if largest <= integer_range(kind)[1]:
        return indices
    return build.convert(indices, "s32" if largest <= MOST_TRIPS else "s64")


def scalars(build: Builder, vector: Instruction) -> list[Instruction]:
    """The elements of a vector."""
    (count,) = vector.shape.dimensions
    return [build.reshape(build.slice(vector, [Slice(n, n + 1, 1)]), ()) for n in range(count)]


def vector_rows(build: Builder, indices: Instruction, vector: int, count: int) -> Instruction:
    """Indices as [N, vector], from such with the dimension `vector`, which moves last."""
    shape = indices.shape
    if vector != shape.rank - 1:
        order = [*[d for d in range(shape.rank) if d != vector], vector]
        indices = moved_in_place(build, indices, order)
    return build.reshape(indices, (count, shape.dimensions[vector]))


def moved_in_place(build: Builder, array: Instruction, order: Sequence[int]) -> Instruction:
    """A transpose to the layout that leaves all elements where they are in memory."""
    shape, places = array.shape, inverse(order)
    layout = shape.layout._replace(
        minor_to_major=tuple([places[d] for d in shape.layout.minor_to_major])
    )
    sizes = tuple([shape.dimensions[d] for d in order])
    return build.transpose(array, order, array_shape(shape.type_name, sizes, layout=layout))


def row_start(build: Builder, counter: Instruction, rank: int) -> Instruction:
    """The index of the start of a row: the counter, which is a vector, and zeros."""
    zero = build.scalar(0, _S32)
    return build.pad(counter, zero, [PaddingDimension(0, rank - 1, 0)])


def row(build: Builder, start: Instruction, array: Instruction) -> Instruction:
    """The row of an array at an index, without its first dimension."""
    rest = array.shape.dimensions[1:]
    return build.reshape(build.dynamic_slice(array, scalars(build, start), (1, *rest)), rest)


def index_vector(build: Builder, counter: Instruction, indices: Instruction) -> Instruction:
    """The index vector of a trip, from indices that are [N, vector], or [N] for one index each."""
    if indices.shape.rank == 1:
        return build.dynamic_slice(indices, scalars(build, counter), (1,))
    return row(build, row_start(build, counter, 2), indices)
