"""An entry that takes and gives arrays of static sizes only, as XLA is called with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from hloopt.ir.attributes.values import format_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.tuples import make_tuple, read_element


def parameter_leaves(module: Module) -> list[Shape]:
    """The arrays that the entry takes, in order; tokens are none."""
    return [leaf for p in module.entry.parameters for leaf in p.shape.leaves() if not leaf.is_token]


def result_leaves(module: Module) -> list[Shape]:
    """The arrays that the entry gives, in order, without tokens."""
    return [leaf for leaf in module.entry.root.shape.leaves() if not leaf.is_token]


def dynamic_dimensions(shape: Shape) -> list[int]:
    """The dimensions whose size is passed beside an array."""
    return [dimension for dimension, dynamic in enumerate(shape.dynamic) if dynamic]


def flatten_entry(module: Module) -> None:
    """A new entry that calls the old one.

    It takes the arrays of `parameter_leaves` at their bounds, each with the sizes of its dynamic
    dimensions as s32[] behind it, and gives those of `result_leaves` likewise. O(leaves).
    """
    inner = module.entry
    entry = module.add_computation("xla_entry")
    numbers = count()

    def parameter(shape: Shape) -> Instruction:
        return entry.add(Opcode.PARAMETER, shape, payload=str(next(numbers)))

    def value(shape: Shape) -> Instruction:
        if shape.is_tuple:
            return entry.add(Opcode.TUPLE, shape, [value(element) for element in shape.elements])
        if shape.is_token:
            return entry.add(Opcode.AFTER_ALL, shape)
        array = parameter(array_shape(shape.type_name, shape.dimensions))
        for dimension in dynamic_dimensions(shape):
            array = _set_size(array, dimension, parameter(array_shape("s32")), dynamic=True)
        return array

    arguments = [value(p.shape) for p in inner.parameters]
    result = entry.add(Opcode.CALL, inner.root.shape, arguments, called=(inner,))
    outputs = list(_outputs(result))
    entry.set_root(make_tuple(entry, outputs))
    module.entry = entry


def _outputs(value: Instruction) -> Iterator[Instruction]:
    """The arrays of a value at their bounds, each with the sizes of its dynamic dimensions."""
    shape = value.shape
    if shape.is_tuple:
        for number in range(len(shape.elements)):
            yield from _outputs(read_element(value, number))
    elif not shape.is_token:
        sizes = [
            value.parent.add(
                Opcode.GET_DIMENSION_SIZE,
                array_shape("s32"),
                [value],
                attributes={"dimensions": format_ints([dimension])},
            )
            for dimension in dynamic_dimensions(shape)
        ]
        for dimension in dynamic_dimensions(shape):
            bound = value.parent.add(
                Opcode.CONSTANT, array_shape("s32"), payload=str(shape.dimensions[dimension])
            )
            value = _set_size(value, dimension, bound, dynamic=False)
        yield value
        yield from sizes


def _set_size(
    array: Instruction, dimension: int, size: Instruction, *, dynamic: bool
) -> Instruction:
    shape = array.shape
    flags = list(shape.dynamic)
    flags[dimension] = dynamic
    return array.parent.add(
        Opcode.SET_DIMENSION_SIZE,
        array_shape(shape.type_name, shape.dimensions, tuple(flags)),
        [array, size],
        attributes={"dimensions": format_ints([dimension])},
    )
