"""Operations that slide a window: reduce-window, select-and-scatter, convolution."""

from __future__ import annotations

import re

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.values import (
    ConvolutionLabels,
    Window,
    WindowDimension,
    parse_dim_labels,
    parse_window,
)
from hloopt.ir.shape_inference.element_types import higher_precision
from hloopt.ir.shape_inference.operation import Operation, expect_array, show
from hloopt.ir.shape_inference.reduction import accumulators, check_reducer
from hloopt.ir.shapes.shape import Shape, array_shape, same_kind, sizes_agree, tuple_shape


def infer_reduce_window(operation: Operation) -> Shape:
    """The windows' positions, in the default layout; a tuple where the function gives one.

    Where the shape is left out, XLA reads one input and one initial value whatever follows, and
    takes the element type of the latter.
    """
    operands = operation.operands
    if not (len(operands) >= 2 and len(operands) % 2 == 0):
        raise HloVerifyError(
            f"reduce-window expects an even number of operands, but has {len(operands)} operands"
        )
    count = 1 if operation.stated is None else len(operands) // 2
    inputs, initial = operands[:count], operands[count : 2 * count]
    for shape in inputs:
        expect_array(shape, "operand of reduce-window")
        if shape.dimensions != inputs[0].dimensions:
            raise HloVerifyError(
                f"Reduce-window inputs differ in size: {show(inputs[0])} and {show(shape)}."
            )
    (reducer,) = operation.take_callees(1)
    check_reducer(reducer, initial, inputs)
    window = _window(operation)
    sizes, dynamic = slide(window, inputs[0])
    types = initial if operation.stated is None else accumulators(reducer)
    results = [array_shape(shape.type_name, sizes, dynamic) for shape in types]
    is_tuple = operation.stated is not None and reducer.root.shape.is_tuple
    return tuple_shape(results) if is_tuple else results[0]


def infer_select_and_scatter(operation: Operation) -> Shape:
    """The operand's shape; the source has the sizes of the windows' positions."""
    operand, source, initial = operation.take_operands(3)
    select, scatter = operation.take_callees(2)
    for shape, role in ((operand, "operand"), (source, "source")):
        expect_array(shape, f"{role} of select-and-scatter")
    parameters = [parameter.shape for parameter in select.parameters]
    if len(parameters) != 2:
        raise HloVerifyError("Select function must take two parameters.")
    result = select.root.shape
    if not (result.is_scalar and result.type_name == "pred"):
        raise HloVerifyError("Select function must have rank-0 PRED result.")
    for parameter, which in zip(parameters, ("first", "second"), strict=True):
        if not (parameter.is_scalar and same_kind(parameter, operand)):
            raise HloVerifyError(
                f"Select function's {which} parameter shape currently must match the operand "
                f"element shape, but got {show(parameter)} vs {operand.type_name}[]."
            )
    check_reducer(scatter, [initial], [source])
    sizes, _ = slide(_window(operation), operand)
    if not (sizes_agree(sizes, source.dimensions) and same_kind(source, operand)):
        expected = array_shape(source.type_name, sizes)
        raise HloVerifyError(
            f"Source shape does not match the shape of window-reduced operand: source("
            f"{show(source)}), window-reduced operand({show(expected)})."
        )
    return operand


def _window(operation: Operation) -> Window:
    text = operation.attributes.get("window")
    return Window() if text is None else parse_window(text)


def slide(window: Window, base: Shape) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Number of positions of a window in each dimension, and whether it is dynamic.

    Raises HloVerifyError for a window of another rank or without extent.
    """
    if len(window.dimensions) != base.rank:
        raise HloVerifyError(
            f"Window has dimension {len(window.dimensions)} but base shape has dimension "
            f"{base.rank}."
        )
    sizes = tuple(
        _positions(dimension, size)
        for dimension, size in zip(window.dimensions, base.dimensions, strict=True)
    )
    return sizes, base.dynamic


def _positions(window: WindowDimension, size: int) -> int:
    for value, name in (
        (window.size, "dimension"),
        (window.stride, "stride"),
        (window.lhs_dilate, "base area dilation factor"),
        (window.rhs_dilate, "window dilation factor"),
    ):
        if value <= 0:
            raise HloVerifyError(f"Window has a non-positive {name}.")
    if size < 0:
        return -1
    padded = _dilate(size, window.lhs_dilate) + window.pad_low + window.pad_high
    if padded < 0:
        raise HloVerifyError("Window padding results in a negative size.")
    extent = _dilate(window.size, window.rhs_dilate)
    return 0 if extent > padded else (padded - extent) // window.stride + 1


def _dilate(size: int, factor: int) -> int:
    return 0 if size == 0 else (size - 1) * factor + 1


def infer_convolution(operation: Operation) -> Shape:
    """Batch, output features and window positions as `dim_labels` orders them.

    If the shape is stated, a gradient may also have the labels of its forward convolution: released
    versions of XLA expect its own labels, newer ones those of the forward convolution.
    """
    lhs, rhs = operation.take_operands(2)
    rhs = _values(rhs)
    expect_array(lhs, "lhs of convolution")
    expect_array(rhs, "rhs of convolution")
    labels = parse_dim_labels(operation.attribute("dim_labels"))
    kind = operation.attributes.get("convolution_kind")
    stated = operation.stated
    if stated is None or kind not in ("dgrad", "wgrad"):
        return _convolve(operation, lhs, rhs, labels)
    for reading in (labels, _gradient_labels(labels, kind)):
        try:
            result = _convolve(operation, lhs, rhs, reading)
        except HloVerifyError:
            continue
        if sizes_agree(result.dimensions, stated.dimensions):
            return result
    return _convolve(operation, lhs, rhs, labels)


def _gradient_labels(labels: ConvolutionLabels, kind: str) -> ConvolutionLabels:
    """The labels of a gradient as a convolution of its own, from those of the forward one.

    The data gradient reads the output gradient and the kernel; the kernel gradient reads the data
    and the output gradient, and sums over the batch.
    """
    if kind == "dgrad":
        kernel = labels.kernel.translate(str.maketrans("io", "oi"))
        return labels._replace(input=labels.output, kernel=kernel, output=labels.input)
    return labels._replace(
        input=labels.input.translate(str.maketrans("bf", "fb")),
        kernel=labels.output.translate(str.maketrans("bf", "io")),
        output=labels.kernel.translate(str.maketrans("io", "bf")),
    )


def _convolve(operation: Operation, lhs: Shape, rhs: Shape, labels: ConvolutionLabels) -> Shape:
    rank = len(labels.input)
    if any(len(part.rstrip("?")) > rank for part in (labels.kernel, labels.output)):
        raise HloVerifyError(
            f"dim_labels {labels.input}_{labels.kernel}->{labels.output} name a dimension that a "
            f"shape of rank {rank} does not have"
        )
    for shape, side in ((lhs, "LHS"), (rhs, "RHS")):
        if shape.rank != rank:
            raise HloVerifyError(
                f"The {side} argument to a convolution should have rank {rank}; "
                f"{side.lower()}: {show(shape)}."
            )
    window = _window(operation)
    if len(window.dimensions) != rank - 2:
        raise HloVerifyError("Window must have same number of dimensions as dimension numbers.")
    kernel_sizes = [rhs.dimensions[d] for d in labels.kernel_spatial_dimensions]
    if kernel_sizes != [dimension.size for dimension in window.dimensions]:
        raise HloVerifyError(
            f"Window dimensions do not match RHS shape: {show(rhs)}, "
            f"window={operation.attributes.get('window', '{}')}."
        )
    _check_features(operation, lhs, rhs, labels)
    output_features = rhs.dimensions[labels.kernel_output_feature_dimension]
    if rhs.dynamic[labels.kernel_output_feature_dimension]:
        raise HloVerifyError(
            "Dynamic output feature dim on convolution kernel is not supported: rhs shape is "
            f"{show(rhs)}"
        )
    batch = labels.input_batch_dimension
    batch_size = lhs.dimensions[batch]
    if batch_size >= 0:
        batch_size //= operation.integer("batch_group_count", 1)
    places: dict[int, tuple[int, bool]] = {
        labels.output_batch_dimension: (batch_size, lhs.dynamic[batch]),
        labels.output_feature_dimension: (
            output_features,
            rhs.dynamic[labels.kernel_output_feature_dimension],
        ),
    }
    for i, dimension in enumerate(window.dimensions):
        source = labels.input_spatial_dimensions[i]
        size = _positions(dimension, lhs.dimensions[source])
        is_dynamic = lhs.dynamic[source] or rhs.dynamic[labels.kernel_spatial_dimensions[i]]
        places[labels.output_spatial_dimensions[i]] = (size, is_dynamic)
    return array_shape(
        higher_precision(lhs.type_name, rhs.type_name),
        tuple(places[d][0] for d in range(rank)),
        tuple(places[d][1] for d in range(rank)),
    )


def _check_features(
    operation: Operation, lhs: Shape, rhs: Shape, labels: ConvolutionLabels
) -> None:
    feature_groups = operation.integer("feature_group_count", 1)
    batch_groups = operation.integer("batch_group_count", 1)
    if not (feature_groups > 0 and batch_groups > 0):
        raise HloVerifyError(
            f"feature_group_count {feature_groups} and batch_group_count {batch_groups} must be "
            "positive"
        )
    if not (feature_groups == 1 or batch_groups == 1):
        raise HloVerifyError(
            f"both batch_group_count {batch_groups} and feature_group_count {feature_groups} "
            "cannot be greater than 1"
        )
    shapes = f"got <conv>({show(lhs)}, {show(rhs)})"
    batch = lhs.dimensions[labels.input_batch_dimension]
    if not (batch < 0 or batch % batch_groups == 0):
        raise HloVerifyError(
            f"Expected input batch dimension (value {batch}) to be divisible by batch_group_count "
            f"(value {batch_groups}); {shapes}"
        )
    outputs = rhs.dimensions[labels.kernel_output_feature_dimension]
    for count, name in (
        (feature_groups, "feature_group_count"),
        (batch_groups, "batch_group_count"),
    ):
        if not (outputs < 0 or outputs % count == 0):
            raise HloVerifyError(
                f"Expected output feature dimension (value {outputs}) to be divisible by {name} "
                f"(value {count}); {shapes}"
            )
    features = lhs.dimensions[labels.input_feature_dimension]
    kernel_features = rhs.dimensions[labels.kernel_input_feature_dimension]
    kernel_features *= _sparsity(operation)
    are_unbounded = features < 0 and kernel_features < 0
    if not (are_unbounded or features == kernel_features * feature_groups):
        raise HloVerifyError(
            f"Expected LHS feature dimension (value {features}) to be a multiple of "
            f"feature_group_count (value {feature_groups}), and LHS feature dimension / "
            f"feature_group_count = RHS feature dimension (value {kernel_features}); {shapes}"
        )


def _values(kernel: Shape) -> Shape:
    """The elements of a kernel, which may be a tuple of them and of their places."""
    if not kernel.is_tuple:
        return kernel
    if len(kernel.elements) != 2:
        raise HloVerifyError(
            "rhs of convolution, if a tuple, must have 2 elements for sparsity; got: "
            f"{show(kernel)}"
        )
    return kernel.elements[0]


def _sparsity(operation: Operation) -> int:
    """The number of input features of the kernel that each stored one stands for."""
    config = operation.attributes.get("sparsity_config", "")
    found = re.search(r"rhs\s*=\s*\{\s*sparsity=(\d{1,18})x(\d{1,18})", config)
    if found is None:
        return 1
    kept, group = int(found[1]), int(found[2])
    if kept != 1:
        raise HloVerifyError(f"Only 1:N sparsity is currently supported. Got {kept}:{group}.")
    return group
