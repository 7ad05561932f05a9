"""Block-scaled tensors: values of a small type, and a scale for each block of their last dimension.

The custom calls that make such tensors, take them apart and multiply them, as XLA defines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hloopt.diagnostics import HloVerifyError, counted
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference import infer_shape
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape import Shape

_CONFIG = "block_scaled_dot_backend_config"
_FEWEST, _MOST = 3, 5
"""Operands of a product: both sides and the scales of the first, then those of the second, then
the global scale."""


class Side(NamedTuple):
    """A side of a product: values, and scales where it has some, each for a block of values."""

    values: Shape
    scales: Shape | None
    stated_block: int | None
    """The block size that the product states; None where it follows from the sizes."""

    @property
    def depth(self) -> int:
        """The size of the dimension that is contracted, the last one."""
        return self.values.dimensions[-1]

    @property
    def blocks(self) -> int:
        """The number of scales in a row that are used: there may be more."""
        assert self.scales is not None
        if self.stated_block is None:
            return self.scales.dimensions[-1]
        return -(-self.depth // self.stated_block)

    @property
    def has_spare_scales(self) -> bool:
        """Whether there are scales of rows, or of a part of the last dimension, beyond the values.

        XLA takes a block that ends beyond the last value for one of the latter.
        """
        assert self.scales is not None
        given = self.scales.dimensions
        fills = self.stated_block is None or self.stated_block * given[-1] == self.depth
        return given[:-1] != self.values.dimensions[:-1] or not fills

    @property
    def used_scales(self) -> tuple[int, ...]:
        """The sizes of the scales that are used."""
        return (*self.values.dimensions[:-1], self.blocks)


def scale_fits(scale: Shape, values: Shape) -> bool:
    """Whether an array can be the scale of a side of a scaled-dot: its sizes divide those of the
    values. One of rank 0 stands for none."""
    if not scale.dimensions:
        return True
    return scale.rank == values.rank and all(
        size == count or (count and size % count == 0)
        for size, count in zip(values.dimensions, scale.dimensions, strict=True)
    )


def common_type(a: str, b: str) -> str:
    """The element type in which XLA multiplies values of two types, such as values and scales.

    Two types of few bits become bf16, which holds the products of most of them.
    """
    first, second = ELEMENT_TYPES[a], ELEMENT_TYPES[b]
    if first.bits < _BF16_BITS and second.bits < _BF16_BITS:
        return "bf16"
    if first is second:
        return a
    if first.bits == second.bits:
        return "f32"
    return a if first.bits > second.bits else b


_BF16_BITS = 16


_LARGEST_POWERS = {
    **{"f4e2m1fn": 2, "f6e2m3fn": 2, "f6e3m2fn": 4, "f8e3m4": 3, "f8e4m3": 7, "f8e4m3fn": 8},
    **{"f8e4m3fnuz": 7, "f8e4m3b11fnuz": 4, "f8e5m2": 15, "f8e5m2fnuz": 15, "f8e8m0fnu": 127},
    **{"bf16": 127, "f16": 15, "f32": 127, "f64": 1023},
}


def largest_power(type_name: str) -> float:
    """The largest power of two that a floating-point type holds."""
    return 2.0 ** _LARGEST_POWERS[type_name]


CUDNN_BLOCKS = {8: 32, 4: 16}
"""The block sizes that tensor cores take, by the bits of the values."""
ROW_TILE, BLOCK_TILE = 128, 4
"""Tensor cores read scales in tiles of so many rows and blocks."""
SWIZZLE = (0, 1, 4, 3, 2, 5)
"""The transpose, of scales reshaped to `swizzle_sizes`, that puts each tile in one piece. It undoes
itself."""


def swizzle_sizes(scales: Sequence[int]) -> tuple[int, int, int, int, int, int]:
    """The sizes of whole tiles of scales, taken apart: batch, tiles of rows, quarters of a tile,
    their rows, tiles of blocks, their blocks."""
    batch, rows, blocks = (1, *scales)[-3:]
    quarter = ROW_TILE // 4
    return batch, rows // ROW_TILE, 4, quarter, blocks // BLOCK_TILE, BLOCK_TILE


def block_size(values: Shape, scales: Shape) -> int | None:
    """The number of values that share a scale; None where the sizes do not say.

    Those are the last dimensions of arrays of one rank, which is not 0.
    """
    if not values.rank or values.rank != scales.rank:
        return None
    count, blocks = values.dimensions[-1], scales.dimensions[-1]
    return count // blocks if count > 0 and blocks > 0 and count % blocks == 0 else None


def why_no_quantize(call: Instruction) -> str | None:
    """The reason why a call with the target QUANTIZE means nothing, or None where it does."""
    if len(call.operands) != 1:
        return "Incorrect number of operands for quantize op"
    source, results = call.operands[0].shape, call.shape.elements
    if len(results) != 2 or results[0].dimensions != source.dimensions or not results[1].is_array:
        return "Incorrect output shape for quantize op"
    values, scales = results
    held = _LARGEST_POWERS.get(source.type_name, -1)
    if held < _LARGEST_POWERS.get(values.type_name, held + 1):
        return f"{source.type_name} does not hold the largest power of two of {values.type_name}"
    return _why_no_pair(values, scales, "Output and scale")


def why_no_dequantize(call: Instruction) -> str | None:
    """The reason why a call with the target DEQUANTIZE means nothing, or None where it does."""
    if len(call.operands) != 2:
        return "Incorrect number of operands for dequantize op"
    values, scales = (operand.shape for operand in call.operands)
    if not call.shape.is_array or call.shape.dimensions != values.dimensions:
        return "Incorrect output shape for dequantize op"
    return _why_no_pair(values, scales, "Input and scale")


def _why_no_pair(values: Shape, scales: Shape, what: str) -> str | None:
    if values.dimensions[:-1] != scales.dimensions[:-1]:
        return f"{what} shape dimensions do not match"
    if block_size(values, scales) is None:
        return f"{scales.text} does not divide {values.text} into blocks"
    return None


def dot_sides(product: Instruction) -> tuple[Side, Side]:
    """The sides of a product: a call with the target BLOCK_SCALED_DOT."""
    block = _stated_block(product)
    lhs, rhs, *scales = (operand.shape for operand in product.operands[:4])
    return Side(lhs, scales[0], block), Side(rhs, scales[1] if len(scales) > 1 else None, block)


def _stated_block(product: Instruction) -> int | None:
    config = backend_config(product).get(_CONFIG)
    if not isinstance(config, dict):
        return None
    try:
        return int(config.get("block_size", 0))
    except (TypeError, ValueError):
        return 0


def dot_dimensions(rank: int) -> dict[str, str]:
    """The dimension numbers of a product of such a rank, as attributes of a dot."""
    contracted = f"{{{rank - 1}}}"
    batch = {"lhs_batch_dims": "{0}"} if rank == 3 else {}
    of_rhs = {"rhs_batch_dims": "{0}"} if rank == 3 else {}
    return {
        **batch,
        "lhs_contracting_dims": contracted,
        **of_rhs,
        "rhs_contracting_dims": contracted,
    }


def _has_shape(product: Instruction, shape: Shape) -> bool:
    """Whether a product has a shape, but for its element type and its memory space."""
    layout = product.shape.layout._replace(memory_space=shape.layout.memory_space)
    return product.shape.with_layout(layout) is shape.with_element_type(product.shape.type_name)


def why_no_dot(product: Instruction) -> str | None:
    """The reason why a call with the target BLOCK_SCALED_DOT means nothing, or None where it does.

    `why_no_blocks` says more, for each side.
    """
    operands = product.operands
    if not _FEWEST <= len(operands) <= _MOST:
        return "Incorrect number of operands for block scaled dot op"
    lhs, rhs = dot_sides(product)
    try:
        shape = infer_shape(Opcode.DOT, (lhs.values, rhs.values), dot_dimensions(lhs.values.rank))
    except HloVerifyError as error:
        return error.message
    if not product.shape.is_array or not _has_shape(product, shape):
        return "Incorrect output shape for block scaled dot op"
    if len(operands) == _MOST:
        scale = operands[-1].shape
        if not scale.is_scalar or scale.type_name != product.shape.type_name:
            return "Global scale shape must be a scalar with the result's type"
    return _why_no_side(lhs) or _why_no_side(rhs)


def _why_no_side(side: Side) -> str | None:
    values, scales = side.values, side.scales
    if scales is None:
        return None
    if side.stated_block is not None and side.stated_block < 1:
        return f"it states a block size of {side.stated_block}"
    if scales.rank != values.rank:
        return f"the scales {scales.text} have another rank than the values {values.text}"
    *batch, rows, depth = (1, *values.dimensions)[-3:]
    *scale_batch, scale_rows, blocks = (1, *scales.dimensions)[-3:]
    covered = depth if side.stated_block is None else side.stated_block * blocks
    if batch != scale_batch or scale_rows < rows or covered < depth:
        return f"the scales {scales.text} are not enough for the values {values.text}"
    return None


def why_no_blocks(side: Side) -> str | None:
    """The reason why the last dimension of a side is not divided into its blocks, or None."""
    if side.scales is None or (side.depth and side.blocks and side.depth % side.blocks == 0):
        return None
    return f"{side.depth} values in a row are not divided into {counted(side.blocks, 'block')}"
