"""Bitcasts, which mean what their layouts say, as operations that need no layouts."""

from __future__ import annotations

from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, without_layout


def rewrite_bitcast(instruction: Instruction) -> Instruction:
    """Operations that give the same bytes: an array is brought into the order in which it lies in
    memory,
    split into elements of the other type, and put in order again.

    Adds the instructions and returns the last; the bitcast stays.
    """
    computation, target = instruction.parent, without_layout(instruction.shape)
    value = instruction.operands[0]
    source = value.shape
    outward = source.layout.minor_to_major[::-1]
    value = _transpose(value, outward)
    if source.type_name != target.type_name:
        value = _as_type(computation, value, target)
    inward = instruction.shape.layout.minor_to_major[::-1]
    lying = array_shape(target.type_name, tuple(target.dimensions[d] for d in inward))
    value = computation.add(Opcode.RESHAPE, lying, [value])
    return _transpose(value, tuple(inward.index(d) for d in range(target.rank)))


def _transpose(value: Instruction, order: tuple[int, ...]) -> Instruction:
    if order == tuple(range(len(order))):
        return value
    shape = value.shape
    return value.parent.add(
        Opcode.TRANSPOSE,
        array_shape(shape.type_name, tuple(shape.dimensions[d] for d in order)),
        [value],
        attributes={"dimensions": format_ints(order)},
    )


def _as_type(computation: Computation, value: Instruction, target: Shape) -> Instruction:
    """The bits of a row-major array as elements of another type, which may be wider or narrower."""
    source = value.shape
    assert source.element_type is not None
    assert target.element_type is not None
    wide, narrow = source.element_type.bits, target.element_type.bits
    if wide == narrow:
        shape = source.with_element_type(target.type_name)
        return computation.add(Opcode.BITCAST_CONVERT, shape, [value])
    if wide > narrow:
        pieces = (source.element_count(), wide // narrow)
        flat = computation.add(Opcode.RESHAPE, array_shape(source.type_name, pieces[:1]), [value])
        result = array_shape(target.type_name, pieces)
    else:
        parts = array_shape(source.type_name, (target.element_count(), narrow // wide))
        flat = computation.add(Opcode.RESHAPE, parts, [value])
        result = array_shape(target.type_name, (target.element_count(),))
    return computation.add(Opcode.BITCAST_CONVERT, result, [flat])
