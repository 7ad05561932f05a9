"""Dot products, convolutions, transforms and solvers."""

from __future__ import annotations

from math import gcd, prod

from hloopt.analysis.cost.model import Cost, moving
from hloopt.analysis.cost.sizes import bytes_of_operands, leaf_bytes, leaf_elements
from hloopt.ir.attributes.values import (
    WindowDimension,
    parse_dim_labels,
    parse_int,
    parse_ints,
    parse_window,
)
from hloopt.ir.instruction import Instruction

MULTIPLY_ADD = 2
_TRANSFORM_STEP = 8


def dot_flops(dot: Instruction) -> int:
    """A multiply-add per element of the result and of the contracted dimensions."""
    lhs = dot.operands[0].shape
    contracted = parse_ints(dot.attributes.get("lhs_contracting_dims", "{}"))
    depth = prod(lhs.dimensions[dimension] for dimension in contracted)
    return MULTIPLY_ADD * dot.shape.element_count() * depth


def convolution_flops(convolution: Instruction) -> int:
    """A multiply-add where window and input meet: not in the padding, nor between dilated elements.

    O(sum over spatial dimensions of the smaller of window and result).
    """
    attributes = convolution.attributes
    lhs, kernel = (operand.shape for operand in convolution.operands[:2])
    rhs = kernel.elements[0] if kernel.is_tuple else kernel  # a sparse one: values, places
    labels = parse_dim_labels(attributes["dim_labels"])
    spatial = zip(
        parse_window(attributes.get("window", "{}")).dimensions,
        labels.input_spatial_dimensions,
        labels.kernel_spatial_dimensions,
        labels.output_spatial_dimensions,
        strict=True,
    )
    meetings = prod(
        _meetings(
            window,
            lhs.dimensions[of_input],
            rhs.dimensions[of_kernel],
            convolution.shape.dimensions[of_output],
        )
        for window, of_input, of_kernel, of_output in spatial
    )
    groups = parse_int(attributes.get("feature_group_count", "1"))
    features = lhs.dimensions[labels.input_feature_dimension] // groups
    outputs = convolution.shape.dimensions[labels.output_feature_dimension]
    batch = convolution.shape.dimensions[labels.output_batch_dimension]
    return MULTIPLY_ADD * meetings * features * outputs * batch


def _meetings(window: WindowDimension, size: int, taps: int, positions: int) -> int:
    """Pairs of a position of the window and one of its taps that falls on an element."""
    few, many = (taps, window.rhs_dilate), (positions, window.stride)
    if positions < taps:
        few, many = many, few
    count, step = few
    return sum(
        _landings(number * step - window.pad_low, *many, size, window.lhs_dilate)
        for number in range(count)
    )


def _landings(start: int, count: int, step: int, size: int, spacing: int) -> int:
    """The number of those of `count` places from `start` on that have one of `size` elements
    `spacing` apart."""
    first = max(0, -(start // step))
    last = min(count - 1, ((size - 1) * spacing - start) // step)
    common = gcd(step, spacing)
    if last < first or start % common:
        return 0
    period = spacing // common  # every so many places there is an element, or a gap
    residue = -start // common * pow(step // common, -1, period)
    return (last - residue) // period - (first - 1 - residue) // period


def fft_flops(fft: Instruction) -> int:
    """Eight for each element of the operand and each doubling in each dimension."""
    lengths = parse_ints(fft.attributes["fft_length"])
    steps = prod(max(length.bit_length() - 1, 0) for length in lengths)
    return _TRANSFORM_STEP * steps * leaf_elements(fft.operands[0].shape)


def cholesky_cost(cholesky: Instruction) -> Cost:
    """A third of the elements times the size of a matrix; half of each matrix moves."""
    shape = cholesky.shape
    half = leaf_bytes(shape) // 2
    return moving((half,), half, flops=leaf_elements(shape) * shape.dimensions[-1] // 3)


def triangular_solve_cost(solve: Instruction) -> Cost:
    """A multiply-add per element of the right side and row of the triangle, which is half read."""
    triangle, right = bytes_of_operands(solve)
    rows = solve.operands[0].shape.dimensions[-1]
    flops = MULTIPLY_ADD * leaf_elements(solve.operands[1].shape) * rows
    return moving((triangle // 2, right), leaf_bytes(solve.shape), flops=flops)
