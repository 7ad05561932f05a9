"""Slices by which each device keeps a part of its own of what an all-reduce gives to all."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.device_values import DeviceValues
from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape


@dataclass(frozen=True, slots=True)
class ShardSlice:
    """A dynamic-slice that takes a part of one dimension."""

    dimension: int
    size: int
    """Of the part."""
    offsets: tuple[int, ...]
    """The offset of the part on each device, by the number of the device."""


def shard_slice(part: Instruction, values: DeviceValues) -> ShardSlice | str:
    """The part of its operand that a dynamic-slice gives to each device, or why it is not known.

    O(devices), but once for each index.
    """
    whole = part.operands[0].shape
    cut = [d for d in range(whole.rank) if part.shape.dimensions[d] != whole.dimensions[d]]
    if len(cut) != 1:
        return f"%{part.name} slices {counted(len(cut), 'dimension')}, not one"
    (dimension,) = cut
    index = part.operands[1 + dimension]
    offsets = values.of(index)
    if offsets is None:
        return f"%{index.name} depends on more than the number of the device"
    size = part.shape.dimensions[dimension]
    last = whole.dimensions[dimension] - size
    return ShardSlice(dimension, size, tuple(min(max(o, 0), last) for o in offsets))


def why_not_alone(value: Instruction, part: Instruction) -> str | None:
    """The reason why an all-reduce, from which reshapes lead to a slice, cannot give just that
    slice."""
    if len(value.operands) != 1 or constrains_layout(value):
        return "it has several operands, or its layout is constrained"
    step = part.operands[0]
    while True:
        if len(step.users) > 1 or step.is_root:
            return f"not only %{part.name} uses it"
        if step.has_control_dependencies:
            return f"%{step.name} has control dependencies"
        if step is value:
            return None
        step = step.operands[0]


def reduced_behind(part: Instruction) -> Instruction | None:
    """The all-reduce that a dynamic-slice takes a part of, directly or after a reshape."""
    value = part.operands[0]
    if value.opcode is Opcode.RESHAPE:
        value = value.operands[0]
    return value if value.opcode is Opcode.ALL_REDUCE else None


def with_dimension(shape: Shape, dimension: int, size: int) -> Shape:
    """The array with another size in one dimension."""
    sizes = list(shape.dimensions)
    sizes[dimension] = size
    return array_shape(shape.type_name, tuple(sizes), layout=shape.layout)


def with_type_of(shape: Shape, like: Shape) -> Shape:
    """The array with the element type of another, and its packing."""
    layout = shape.layout._replace(element_bits=like.layout.element_bits)
    return array_shape(like.type_name, shape.dimensions, layout=layout)
