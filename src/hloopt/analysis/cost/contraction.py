"""Dot products, convolutions, transforms and solvers."""

from __future__ import annotations

from math import prod

from hloopt.analysis.cost.model import Cost, moving
from hloopt.analysis.cost.sizes import bytes_of_operands, leaf_bytes, leaf_elements
from hloopt.ir.attribute_values import (
    ConvolutionLabels,
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

    Proportional to the sizes of the spatial dimensions' windows and results.
    """
    attributes = convolution.attributes
    lhs, kernel = (operand.shape for operand in convolution.operands[:2])
    rhs = kernel.elements[0] if kernel.is_tuple else kernel  # a sparse one: values, places
    labels = parse_dim_labels(attributes["dim_labels"])
    window = parse_window(attributes.get("window", "{}")).dimensions
    spatial = zip(
        *(window, labels.input_spatial_dimensions, labels.output_spatial_dimensions), strict=True
    )
    meetings = prod(
        _meetings(
            dimension,
            lhs.dimensions[of_input],
            rhs.dimensions[_kernel_dimension(labels, number)],
            convolution.shape.dimensions[of_output],
        )
        for number, (dimension, of_input, of_output) in enumerate(spatial)
    )
    groups = parse_int(attributes.get("feature_group_count", "1"))
    features = lhs.dimensions[labels.input_feature_dimension] // groups
    outputs = convolution.shape.dimensions[labels.output_feature_dimension]
    batch = convolution.shape.dimensions[labels.output_batch_dimension]
    return MULTIPLY_ADD * meetings * features * outputs * batch


def _kernel_dimension(labels: ConvolutionLabels, spatial: int) -> int:
    return labels.kernel_spatial_dimensions[spatial]


def _meetings(window: WindowDimension, size: int, taps: int, positions: int) -> int:
    """Pairs of a window position and a tap that falls on an element of the input."""
    if size <= 0:
        return 0
    count = 0
    last = (size - 1) * window.lhs_dilate
    for tap in range(taps):
        offset = tap * window.rhs_dilate - window.pad_low
        if window.lhs_dilate == 1:  # positions p with 0 <= p * stride + offset <= last
            first = max(0, -(offset // window.stride))
            count += max(0, min(positions - 1, (last - offset) // window.stride) - first + 1)
            continue
        for position in range(positions):
            at = position * window.stride + offset
            count += 0 <= at <= last and at % window.lhs_dilate == 0
    return count


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
