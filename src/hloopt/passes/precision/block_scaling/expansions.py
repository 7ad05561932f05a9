"""Computations of ordinary instructions that do what the calls for block-scaled tensors do."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.block_scaling import Side, block_size, dot_dimensions, dot_sides, largest_power
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import layout_in_order
from hloopt.ir.shapes.shape import array_shape, tuple_shape
from hloopt.passes.precision.block_scaling.steps import (
    binary,
    broadcast,
    convert,
    reshape,
    scalar_constant,
    slice_to,
    with_sizes,
)


def parameters_like(
    computation: Computation, operands: Sequence[Instruction], names: Sequence[str]
) -> list[Instruction]:
    """Parameters of a new computation for the operands of its call."""
    return [
        computation.add(Opcode.PARAMETER, operand.shape, name=name, payload=str(number))
        for number, (operand, name) in enumerate(zip(operands, names, strict=False))
    ]


def expand_quantize(call: Instruction, body: Computation) -> Instruction:
    """Divide each block by its largest number, which becomes the largest power of two of the type.

    Both arrays as a tuple; a block of zeros becomes NaN, as in XLA.
    """
    values, scales = call.shape.elements
    (source,) = parameters_like(body, call.operands, ("input",))
    kind, block = source.shape.type_name, block_size(values, scales)
    assert block is not None
    in_rows = with_sizes(source.shape, *scales.dimensions)
    blocks = reshape(source, with_sizes(source.shape, *scales.dimensions, block))
    amax = body.add(
        Opcode.REDUCE,
        in_rows,
        [blocks, scalar_constant(body, kind, "0")],
        attributes={"dimensions": f"{{{source.shape.rank}}}"},
        called=(_largest_of_two(body, kind),),
    )
    largest = canonical_literal(str(largest_power(values.type_name)), array_shape(kind))
    whole = broadcast(scalar_constant(body, kind, largest), array_shape(kind, in_rows.dimensions))
    scale = convert(binary(Opcode.DIVIDE, amax, whole), scales.type_name)
    divisor = spread(convert(scale, kind), block)
    made = convert(binary(Opcode.DIVIDE, source, divisor), values.type_name)
    return body.add(Opcode.TUPLE, tuple_shape((made.shape, scale.shape)), [made, scale])


def _largest_of_two(caller: Computation, kind: str) -> Computation:
    """A computation of two scalars: the larger of their absolute values."""
    amax = caller.module.add_computation("amax")
    amax.execution_thread = caller.execution_thread
    scalar = array_shape(kind)
    sizes = [
        amax.add(
            Opcode.ABS,
            scalar,
            [amax.add(Opcode.PARAMETER, scalar, name=name, payload=str(number))],
        )
        for number, name in enumerate(("a", "b"))
    ]
    amax.set_root(amax.add(Opcode.MAXIMUM, scalar, sizes))
    return amax


def expand_dequantize(call: Instruction, body: Computation) -> Instruction:
    """Multiply values and scales in the type of the result."""
    values, scales = parameters_like(body, call.operands, ("input", "scale"))
    return _dequantized(values, scales, call.shape.type_name)


def _dequantized(values: Instruction, scales: Instruction, kind: str) -> Instruction:
    factors = convert(values, kind)
    block = block_size(values.shape, scales.shape)
    assert block is not None
    return binary(Opcode.MULTIPLY, factors, spread(convert(scales, kind), block))


def spread(scales: Instruction, block: int) -> Instruction:
    """Each scale as many times as a block has values, in the layout of the scales.

    The dimension that the broadcast adds stands next to the most major one of that layout, so that
    the reshape is right for any.
    """
    shape = scales.shape
    *sizes, count = shape.dimensions
    order = shape.layout.minor_to_major
    most_major = order[-1]
    inner = (*(d + (d >= most_major) for d in order), most_major)
    wide = with_sizes(shape, *sizes, count, block).with_layout(layout_in_order(inner))
    narrow = with_sizes(shape, *sizes, count * block).with_layout(layout_in_order(order))
    return reshape(broadcast(scales, wide, tuple(range(shape.rank))), narrow)


DOT_OPERANDS = ("lhs", "rhs", "lhs_scale", "rhs_scale", "global_scale")


def expand_dot(call: Instruction, body: Computation) -> Instruction:
    """Dequantize both sides, as far as they have scales, and multiply them."""
    lhs, rhs, *scales = parameters_like(body, call.operands, DOT_OPERANDS)
    kind = call.shape.type_name
    sides = [
        _side(values, scale, side, kind)
        for values, scale, side in zip(
            (lhs, rhs), (*scales[:2], None), dot_sides(call), strict=False
        )
    ]
    dimensions = dot_dimensions(lhs.shape.rank)
    product = body.add(Opcode.DOT, call.shape, sides, attributes=dimensions)
    return times_global_scale(product, scales[2]) if len(scales) > 2 else product


def _side(values: Instruction, scales: Instruction | None, side: Side, kind: str) -> Instruction:
    if scales is None:
        return values
    if side.has_spare_scales:
        scales = slice_to(scales, side.used_scales)
    return _dequantized(values, scales, kind)


def times_global_scale(product: Instruction, scale: Instruction) -> Instruction:
    """A product times a scalar."""
    return binary(Opcode.MULTIPLY, product, broadcast(scale, product.shape))
