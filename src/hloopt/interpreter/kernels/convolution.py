"""Convolutions of any number of spatial dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from hloopt.diagnostics import HloVerifyError
from hloopt.interpreter.arithmetic.matrices import (
    joint_dtype,
    multiply,
    product_as,
    product_dtype,
)
from hloopt.interpreter.arithmetic.window_views import (
    count_places,
    dilated_size,
    pad_base,
    windows_over,
)
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.limits import Tick
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.values import Array, dtype_of_shape
from hloopt.ir.attributes.values import WindowDimension, parse_dim_labels, parse_int, parse_window
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference import infer_shape
from hloopt.ir.shapes.shape import sizes_agree

_MOST_COLUMN_ELEMENTS = 1 << 24
_WORTHWHILE_DEPTH = 512
_ALL = WindowDimension()
"""Of a window that leaves a dimension alone."""


@kernel(Opcode.CONVOLUTION, calls=True)
def convolution(plans: Plans, instruction: Instruction, lhs: Array, rhs: Array) -> Array:
    """The kernel as a matrix, or several, times the windows of lhs as columns of another.

    Feature groups and batch groups become a stack of matrices.
    """
    attributes = instruction.attributes
    if "sparsity_config" in attributes:
        raise RunError("sparse operands are not supported", code="HLO501")
    _check_labels(instruction)
    dtype = dtype_of_shape(instruction.shape)
    operands = joint_dtype(lhs, rhs)
    wide = product_dtype(operands, dtype)
    labels = parse_dim_labels(attributes["dim_labels"])
    window = parse_window(attributes.get("window", "{}")).dimensions
    features = parse_int(attributes.get("feature_group_count", "1"))
    batches = parse_int(attributes.get("batch_group_count", "1"))
    base = lhs.astype(wide, copy=False).transpose(
        labels.input_batch_dimension,
        labels.input_feature_dimension,
        *labels.input_spatial_dimensions,
    )
    kernel_ = rhs.astype(wide, copy=False).transpose(
        labels.kernel_output_feature_dimension,
        labels.kernel_input_feature_dimension,
        *labels.kernel_spatial_dimensions,
    )
    kernel_ = np.flip(kernel_, tuple(2 + i for i, d in enumerate(window) if d.reversal))
    groups = batches * features
    result = _convolve(
        _in_groups(base, batches, features), kernel_, groups, window, plans.limits.tick()
    )
    order = (
        labels.output_batch_dimension,
        labels.output_feature_dimension,
        *labels.output_spatial_dimensions,
    )
    return product_as(dtype, result.transpose(np.argsort(order)), operands)


def _check_labels(instruction: Instruction) -> None:
    """Raise RunError for a gradient that has the labels of its forward convolution: XLA does not
    say in which order such a gradient reads the window."""
    kind = instruction.attributes.get("convolution_kind")
    if kind not in ("dgrad", "wgrad"):
        return
    shapes = [operand.shape for operand in instruction.operands]
    try:
        own = infer_shape(Opcode.CONVOLUTION, shapes, instruction.attributes)
    except HloVerifyError:
        own = None
    if own is None or not sizes_agree(own.dimensions, instruction.shape.dimensions):
        raise RunError(
            f"convolution_kind={kind} with the dim_labels of the forward convolution, "
            f"{instruction.attributes['dim_labels']}, cannot be run",
            code="HLO501",
            help="give it the labels of a convolution of its operands to its result",
        )


def _in_groups(base: Array, batches: int, features: int) -> Array:
    """[group, batch, feature, spatial…]; groups divide the batch or the features."""
    batch, feature, *spatial = base.shape
    split = base.reshape(batches, batch // batches, features, feature // features, *spatial)
    return np.moveaxis(split, 2, 1).reshape(
        batches * features, batch // batches, feature // features, *spatial
    )


class _Part(NamedTuple):
    """In one spatial dimension, some places of the window, and the outputs that they touch."""

    within: slice
    """Of the kernel."""
    places: slice
    """Of the result: for all others, these places lie in the padding."""
    window: WindowDimension
    """Of a convolution of the base with that part of the kernel, to that part of the result."""


def _convolve(
    base: Array,
    kernel_: Array,
    groups: int,
    window: Sequence[WindowDimension],
    tick: Tick,
) -> Array:
    """[batch, feature, spatial…] of a grouped base and a kernel [output, input, spatial…].

    As many places of the window at a time as make a product deep enough for BLAS: a whole small
    window, single places of a large one. So what lies in the padding is hardly ever looked at.
    """
    batch, (outputs, features) = base.shape[1], kernel_.shape[:2]
    # The batch last: windows are copied in runs of batch times places.
    base = np.ascontiguousarray(np.moveaxis(base, 1, -1))
    sizes = base.shape[2:-1]
    places = [_count_outputs(*dimension) for dimension in zip(sizes, window, strict=True)]
    result = np.zeros((groups, outputs // groups, *places, batch), base.dtype)
    lengths = _box([d.size for d in window], -(-_WORTHWHILE_DEPTH // max(features, 1)))
    parts = map(_parts, sizes, window, lengths)
    for part in product(*parts):
        if tick is not None:
            tick()
        box = kernel_[:, :, *(axis.within for axis in part)]
        _add_products(
            result[:, :, *(axis.places for axis in part)],
            box.reshape(groups, outputs // groups, prod(box.shape[1:])),
            base,
            (_ALL, _ALL, *(axis.window for axis in part), _ALL),
            tick,
        )
    return np.moveaxis(result.reshape(outputs, *places, batch), -1, 0)


def _count_outputs(size: int, dimension: WindowDimension) -> int:
    padded = dilated_size(size, dimension) + dimension.pad_low + dimension.pad_high
    return count_places(padded, dimension)


def _box(sizes: Sequence[int], wanted: int) -> list[int]:
    """Sizes of a box, at most `sizes`, that has about `wanted` elements, in the last dimensions."""
    box: list[int] = []
    for size in (max(size, 1) for size in reversed(sizes)):
        box.insert(0, min(size, wanted))
        wanted = -(-wanted // size)
    return box


def _parts(size: int, dimension: WindowDimension, length: int) -> list[_Part]:
    """A window over a dimension of `size` elements, `length` places at a time."""
    outputs = _count_outputs(size, dimension)
    return [
        part
        for phase in _phases(dimension, outputs)
        for part in _parts_of_phase(size, phase, outputs, length)
    ]


class _Phase(NamedTuple):
    """Outputs and window places that meet elements of a dilated base, not the zeros between them.

    `outputs` and `within` are strided slices of these; `window` is an equivalent window over the
    base without dilation.
    """

    outputs: slice
    within: slice
    window: WindowDimension


def _phases(dimension: WindowDimension, outputs: int) -> Iterator[_Phase]:
    """Split a window over a dilated base into phases that skip the zeros. O(base dilation).

    For output p, place i of the window lies at position p * stride + i * step - pad_low of the
    dilated base; multiples of the dilation are elements, all others are zeros.
    """
    dilation, stride, step = dimension.lhs_dilate, dimension.stride, dimension.rhs_dilate
    each_output = dilation // gcd(stride, dilation)
    common = gcd(step, dilation)
    each_place = dilation // common
    for output in range(min(each_output, outputs)):
        missing = (dimension.pad_low - output * stride) % dilation
        if missing % common:
            continue
        place = missing // common * pow(step // common, -1, each_place) % each_place
        if place >= dimension.size:
            continue
        window = dimension._replace(
            size=-(-(dimension.size - place) // each_place),
            stride=each_output * stride // dilation,
            rhs_dilate=step // common,
            lhs_dilate=1,
            pad_low=(dimension.pad_low - output * stride - place * step) // dilation,
        )
        outputs_slice = slice(output, None, each_output)
        yield _Phase(outputs_slice, slice(place, None, each_place), window)


def _parts_of_phase(size: int, phase: _Phase, outputs: int, length: int) -> Iterator[_Part]:
    dimension = phase.window
    stride, step, pad_low = dimension.stride, dimension.rhs_dilate, dimension.pad_low
    of_phase = range(outputs)[phase.outputs]
    places = range(phase.within.start, phase.within.start + dimension.size * phase.within.step)[
        :: phase.within.step
    ]
    for first in range(0, dimension.size, length):
        last = min(first + length, dimension.size) - 1
        # output p sees p * stride + i * step, counted from the padding, at place i of the window
        low = max(-((last * step - pad_low) // stride), 0)
        high = min((pad_low + size - 1 - first * step) // stride + 1, len(of_phase))
        if low >= high:
            continue
        reach = (high - 1 - low) * stride + (last - first) * step + 1
        start = pad_low - low * stride - first * step
        yield _Part(
            slice(places[first], places[last] + 1, phase.within.step),
            slice(of_phase[low], of_phase[high - 1] + 1, phase.outputs.step),
            dimension._replace(size=last - first + 1, pad_low=start, pad_high=reach - size - start),
        )


def _add_products(
    result: Array,
    matrices: Array,
    base: Array,
    window: Sequence[WindowDimension],
    tick: Tick,
) -> None:
    """Add matrices times all windows of a grouped base to [group, output, spatial…, batch].

    At most some 2^24 elements of windows are laid out at a time.
    """
    groups, _, *places, batch = result.shape
    rank, depth = len(places), matrices.shape[2]
    view = windows_over(pad_base(base, window, np.zeros((), base.dtype)), window)
    # [group, feature, within the window…, places…, batch]
    columns = view.reshape(view.shape[: 3 + rank] + view.shape[5 + rank : -1]).transpose(
        0, 1, *range(3 + rank, 3 + 2 * rank), *range(2, 3 + rank)
    )
    step = max(_MOST_COLUMN_ELEMENTS // max(groups * depth * prod(places), 1), 1)
    for start in range(0, batch, step):
        some = slice(start, start + step)
        added = result[..., some]
        laid_out = columns[..., some].reshape(groups, depth, -1)
        added += multiply(matrices, laid_out, tick).reshape(added.shape)
