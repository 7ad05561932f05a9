"""Instructions that the passes over block-scaled tensors add, each next to its operands."""

from __future__ import annotations

from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, without_packing


def convert(operand: Instruction, type_name: str) -> Instruction:
    """The operand as values of another type, in its layout, but not packed."""
    shape = without_packing(operand.shape).with_element_type(type_name)
    return operand.parent.add(Opcode.CONVERT, shape, [operand])


def reshape(operand: Instruction, shape: Shape) -> Instruction:
    """The same elements in other sizes."""
    return operand.parent.add(Opcode.RESHAPE, shape, [operand])


def broadcast(operand: Instruction, shape: Shape, dimensions: tuple[int, ...] = ()) -> Instruction:
    """The operand, whose dimensions are those of the shape with these numbers, all over a shape."""
    attributes = {"dimensions": format_ints(dimensions)}
    return operand.parent.add(Opcode.BROADCAST, shape, [operand], attributes=attributes)


def binary(opcode: Opcode, lhs: Instruction, rhs: Instruction) -> Instruction:
    """An elementwise operation, its result in the layout of `lhs`."""
    return lhs.parent.add(opcode, lhs.shape, [lhs, rhs])


def with_sizes(shape: Shape, *sizes: int) -> Shape:
    """An array of the same type and other sizes, in the default layout."""
    return array_shape(shape.type_name, sizes)


def scalar_constant(body: Computation, type_name: str, value: str) -> Instruction:
    """A number, as its literal is written."""
    return body.add(Opcode.CONSTANT, array_shape(type_name), payload=value)


def slice_to(operand: Instruction, sizes: tuple[int, ...]) -> Instruction:
    """The first elements of each dimension, in the default layout."""
    ranges = ", ".join(f"[0:{size}]" for size in sizes)
    return operand.parent.add(
        Opcode.SLICE,
        with_sizes(operand.shape, *sizes),
        [operand],
        attributes={"slice": f"{{{ranges}}}"},
    )
