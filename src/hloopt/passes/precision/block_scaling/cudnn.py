"""Products of block-scaled tensors as calls of cuDNN, which reads scales tile by tile."""

from __future__ import annotations

from hloopt.ir.attributes.values import format_ints
from hloopt.ir.block_scaling import (
    BLOCK_TILE,
    CUDNN_BLOCKS,
    ROW_TILE,
    SWIZZLE,
    Side,
    block_size,
    dot_sides,
    swizzle_sizes,
)
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import CUDNN_BLOCK_SCALED_DOT
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import zero_bits_text
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference import infer_shape
from hloopt.ir.shapes.layout import default_layout
from hloopt.ir.shapes.shape import array_shape, tuple_shape, without_layout
from hloopt.ir.tuples import element
from hloopt.passes.precision.block_scaling.expansions import (
    DOT_OPERANDS,
    parameters_like,
    times_global_scale,
)
from hloopt.passes.precision.block_scaling.steps import scalar_constant, slice_to, with_sizes

_FORMATS = {
    ("f8e4m3fn", "f8e8m0fnu"): "mxfp8-e4m3",
    ("f8e5m2", "f8e8m0fnu"): "mxfp8-e5m2",
    ("f4e2m1fn", "f8e4m3fn"): "nvfp4",
}
"""The kinds of block-scaled tensors that cuDNN knows, by the types of values and scales."""
_PAIRS = frozenset(
    (
        *(("mxfp8-e4m3", "mxfp8-e4m3"), ("mxfp8-e4m3", "mxfp8-e5m2")),
        *(("mxfp8-e5m2", "mxfp8-e4m3"), ("nvfp4", "nvfp4")),
    )
)


def are_supported(lhs: Side, rhs: Side) -> bool:
    """Whether cuDNN multiplies two sides like these."""
    return (_format(lhs), _format(rhs)) in _PAIRS


def _format(side: Side) -> str | None:
    """The kind of a side; None where cuDNN does not take it."""
    values, scales = side.values, side.scales
    if scales is None or values.rank not in (2, 3):
        return None
    if any(
        s.layout.minor_to_major != default_layout(s.rank).minor_to_major for s in (values, scales)
    ):
        return None
    found = _FORMATS.get((values.type_name, scales.type_name))
    if found is None or values.element_type is None:
        return None
    block = side.stated_block or block_size(values, scales) or 1
    fits = block == CUDNN_BLOCKS[values.element_type.bits] and side.depth % block == 0
    return found if fits else None


def expand_dot_for_cudnn(
    call: Instruction, body: Computation, *, takes_global_scale: bool
) -> Instruction:
    """Pad both sides to whole tiles, swizzle their scales, call cuDNN and cut the result."""
    lhs, rhs, *scales = parameters_like(body, call.operands, DOT_OPERANDS)
    padded = [
        padded_side(side, values, scale)
        for side, values, scale in zip(dot_sides(call), (lhs, rhs), scales, strict=False)
    ]
    *batch, _, _ = call.shape.dimensions
    rows, columns = (values.shape.dimensions[-2] for values, _ in padded)
    product_shape = with_sizes(call.shape, *batch, rows, columns)
    operands = [values for values, _ in padded] + [swizzled(scale) for _, scale in padded]
    global_scale = scales[2:]
    result = body.add(
        Opcode.CUSTOM_CALL,
        tuple_shape((product_shape, array_shape("u8", (0,)))),
        operands + (global_scale if takes_global_scale else []),
        attributes={"custom_call_target": f'"{CUDNN_BLOCK_SCALED_DOT}"'},
    )
    product = element(result, 0)
    if global_scale and not takes_global_scale:
        product = times_global_scale(product, global_scale[0])
    if product.shape.dimensions != call.shape.dimensions:
        product = slice_to(product, call.shape.dimensions)
    return product


def padded_side(
    side: Side, values: Instruction, scales: Instruction, *, pads_values: bool = True
) -> tuple[Instruction, Instruction]:
    """Values and scales by whole tiles of scales. Scales that are by whole tiles stay."""
    assert side.scales is not None
    *batch, rows, depth = side.values.dimensions
    blocks = side.scales.dimensions[-1]
    tiled_rows, tiled_blocks = _by(ROW_TILE, rows), _by(BLOCK_TILE, blocks)
    if (rows, blocks) == (tiled_rows, tiled_blocks):
        return values, scales
    if pads_values and rows != tiled_rows:
        values = _pad_to(values, (*batch, tiled_rows, depth))
    sizes = (*batch, tiled_rows, tiled_blocks)
    return values, scales if scales.shape.dimensions == sizes else _pad_to(scales, sizes)


def _by(tile: int, size: int) -> int:
    return -(-size // tile) * tile


def _pad_to(operand: Instruction, sizes: tuple[int, ...]) -> Instruction:
    """More, or fewer, elements at the end of each dimension; those that are new have bits 0."""
    element_type = operand.shape.element_type
    assert element_type is not None
    zero = scalar_constant(operand.parent, element_type.name, zero_bits_text(element_type))
    padding = "x".join(
        f"0_{new - old}" for new, old in zip(sizes, operand.shape.dimensions, strict=True)
    )
    return operand.parent.add(
        Opcode.PAD,
        with_sizes(operand.shape, *sizes),
        [operand, zero],
        attributes={"padding": padding},
    )


def swizzled(scales: Instruction, *, is_bitcast: bool = False) -> Instruction:
    """Scales, by whole tiles, in the order in which tensor cores read them.

    With `is_bitcast`, the transpose moves the data, and what comes before and after it is free.
    """
    body, shape = scales.parent, scales.shape
    view = Opcode.BITCAST if is_bitcast else Opcode.RESHAPE
    tiles = body.add(view, with_sizes(shape, *swizzle_sizes(shape.dimensions)), [scales])
    order = {"dimensions": format_ints(SWIZZLE)}
    turned = infer_shape(Opcode.TRANSPOSE, (tiles.shape,), order)
    if is_bitcast:
        turned = without_layout(turned)
    transposed = body.add(Opcode.TRANSPOSE, turned, [tiles], attributes=order)
    return body.add(view, with_sizes(shape, *shape.dimensions), [transposed])
