"""Rules for convolution."""

from __future__ import annotations

from math import prod

from hloopt.ir.attributes.typed import labels_of, padding_of, window_of
from hloopt.ir.attributes.values import (
    PaddingDimension,
    Window,
    WindowDimension,
    parse_int,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import array_shape
from hloopt.passes.rewriting.rules.build import format_window
from hloopt.passes.rewriting.rules.constants import splat_value
from hloopt.passes.rewriting.rules.pattern import op, splat
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.shapes import has_zero, is_identity

_MOST_SPATIAL = 3
_CONVOLUTION = op("convolution", "image", "kernel").where(lambda i: _is_dense(i))


def _is_dense(convolution: Instruction) -> bool:
    """Whether both operands have a dimension for each label: sparse ones have more."""
    labels = labels_of(convolution)
    image, kernel = convolution.operands[:2]
    return (len(labels.input), len(labels.kernel)) == (image.shape.rank, kernel.shape.rank)


def _groups(convolution: Instruction) -> tuple[int, int]:
    """The feature and batch group counts."""
    names = ("feature_group_count", "batch_group_count")
    feature, batch = (parse_int(convolution.attributes.get(name, "1")) for name in names)
    return feature, batch


@rule(_CONVOLUTION)
def convolution_of_empty(m: AlgsimpMatch) -> Result:
    """A convolution of an operand without elements → broadcast of 0."""
    if not (has_zero(m.image.shape) or has_zero(m.kernel.shape)):
        return None
    return m.build.splat(0, m.root.shape)


@rule(op("convolution", op("pad", "x", splat(0)).named("pad"), "kernel"),
      option="enable_folding_pad_into_convolution", floats="finite")  # fmt: skip
def fold_pad_into_image(m: AlgsimpMatch) -> Result:
    """convolution(pad(x) by 0, kernel) → convolution(x, kernel) whose window pads: edges add up,
    interior padding becomes base dilation."""
    labels, padding = labels_of(m.root), padding_of(m.pad)
    spatial = labels.input_spatial_dimensions
    if any(p != PaddingDimension() for d, p in enumerate(padding) if d not in spatial):
        return Missed(f"%{m.pad.name} pads batches or features")
    rows = []
    for d, row in zip(spatial, window_of(m.root).dimensions, strict=True):
        p = padding[d]
        if p.interior and (row.pad_low or row.pad_high or row.lhs_dilate != 1):
            return Missed("interior padding meets padding or base dilation of the window")
        if row.lhs_dilate != 1 and (p.low or p.high):
            return Missed("padding meets base dilation of the window")
        rows.append(
            row._replace(
                pad_low=row.pad_low + p.low,
                pad_high=row.pad_high + p.high,
                lhs_dilate=row.lhs_dilate if p.interior == 0 else p.interior + 1,
            )
        )
    return _with_window(m, m.x, m.kernel, rows)


@rule(op("convolution", "image", op("pad", "x", splat(0)).named("pad")),
      option="enable_folding_pad_into_convolution", floats="finite")  # fmt: skip
def fold_pad_into_kernel(m: AlgsimpMatch) -> Result:
    """convolution(x, pad(kernel) by 0 between elements) → convolution with window dilation."""
    labels, padding = labels_of(m.root), padding_of(m.pad)
    spatial = labels.kernel_spatial_dimensions
    if any(p != PaddingDimension() for d, p in enumerate(padding) if d not in spatial):
        return Missed(f"%{m.pad.name} pads features")
    rows = []
    for d, row in zip(spatial, window_of(m.root).dimensions, strict=True):
        p = padding[d]
        if p.low or p.high:
            return Missed(f"%{m.pad.name} pads edges")
        if p.interior and row.rhs_dilate != 1:
            return Missed("interior padding meets window dilation")
        rows.append(
            row._replace(
                size=m.x.shape.dimensions[d],
                rhs_dilate=row.rhs_dilate if p.interior == 0 else p.interior + 1,
            )
        )
    return _with_window(m, m.image, m.x, rows)


def _with_window(
    m: AlgsimpMatch, image: Instruction, kernel: Instruction, rows: list[WindowDimension]
) -> Instruction:
    made = m.build.clone(m.root, [image, kernel], m.root.shape)
    made.set_attribute("window", format_window(Window(tuple(rows))))
    return made


@rule(_CONVOLUTION, layouts="insensitive", option="enable_conv_operand_swap", floats="finite")
def swap_convolution_operands(m: AlgsimpMatch) -> Result:
    """convolution(image, kernel) → convolution(reverse(kernel), image) where the kernel is the
    larger one: padding is mirrored, dilations are exchanged."""
    labels = labels_of(m.root)
    if _groups(m.root) != (1, 1) or "?" in "".join(labels):
        return None
    image, kernel = m.image.shape.dimensions, m.kernel.shape.dimensions
    rows: list[WindowDimension] = []
    turned: list[int] = []
    own = other = 1
    window = window_of(m.root).dimensions
    for row, i, k in zip(
        window, labels.input_spatial_dimensions, labels.kernel_spatial_dimensions, strict=True
    ):
        if _is_contracted(row, image[i]) or _is_group(row, image[i]):
            rows.append(row)
            continue
        own *= kernel[k]
        other *= kernel[k] if image[i] == 1 and _is_full(row) else image[i]
        wide = max(0, (image[i] - 1) * row.lhs_dilate + 1)
        narrow = (kernel[k] - 1) * row.rhs_dilate + 1
        rows.append(
            WindowDimension(
                image[i], row.stride, wide - narrow + row.pad_low, wide - narrow + row.pad_high,
                row.rhs_dilate, row.lhs_dilate, 1,
            )
        )  # fmt: skip
        if not row.reversal:
            turned.append(k)
    if own <= other:
        return None
    new_image = m.build.reverse(m.kernel, turned) if turned else m.kernel
    made = m.build.clone(m.root, [new_image, m.image], m.root.shape)
    made.set_attribute("window", format_window(Window(tuple(rows))))
    made.set_attribute("dim_labels", _swapped_labels(m.root))
    precision = m.root.attributes.get("operand_precision")
    if precision is not None:
        parts = [part.strip() for part in precision.strip("{}").split(",")]
        made.set_attribute("operand_precision", f"{{{','.join(reversed(parts))}}}")
    lowerable = m.options.conv_is_lowerable
    if lowerable is not None and not lowerable(made):
        return Missed("the device cannot run it with exchanged operands")
    return made


def _is_contracted(row: WindowDimension, size: int) -> bool:
    """Whether a window covers a dimension once, whole, so that both sides are alike."""
    return row == WindowDimension(size)


def _is_group(row: WindowDimension, size: int) -> bool:
    """Whether each element along a dimension is that of the image times that of the kernel."""
    return row == WindowDimension(size, stride=size - 1, lhs_dilate=size)


def _is_full(row: WindowDimension) -> bool:
    """Whether one element of the image meets each element of the kernel."""
    edge = row.size - 1
    return row == WindowDimension(
        row.size, pad_low=edge, pad_high=edge, lhs_dilate=row.lhs_dilate, reversal=row.reversal
    )


_TO_IMAGE = str.maketrans("oi", "bf")
_TO_KERNEL = str.maketrans("bf", "oi")
_TO_RESULT = str.maketrans("bf", "fb")


def _swapped_labels(convolution: Instruction) -> str:
    labels = labels_of(convolution)
    return (
        f"{labels.kernel.translate(_TO_IMAGE)}_{labels.input.translate(_TO_KERNEL)}"
        f"->{labels.output.translate(_TO_RESULT)}"
    )


@rule(_CONVOLUTION, layouts="sensitive", option="enable_conv_simplification", floats="rounding")
def convolution_to_dot(m: AlgsimpMatch) -> Result:
    """A 1x1 convolution → bitcast(dot(bitcast, bitcast)), where features are minor-most and the
    layouts of image and result agree."""
    labels = labels_of(m.root)
    rows = window_of(m.root).dimensions
    if any(row != WindowDimension(reversal=row.reversal, rhs_dilate=row.rhs_dilate)
           for row in rows):  # fmt: skip
        return None
    if _groups(m.root) != (1, 1):
        return None
    image, kernel, result = m.image.shape, m.kernel.shape, m.root.shape
    if labels.input != labels.output or image.layout != result.layout or image.layout.tiles:
        return Missed("the layouts of image and result differ")
    if not image.layout.minor_to_major:
        return None
    if image.layout.minor_to_major[0] != labels.input_feature_dimension:
        return Missed("features are not minor-most")
    order = kernel.layout.minor_to_major
    i, o = labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension
    if order.index(i) < order.index(o) or kernel.layout.tiles:
        return Missed("the input features of the kernel are not more major than the output ones")
    build = m.build
    features, outputs = kernel.dimensions[i], kernel.dimensions[o]
    rest = prod(image.dimensions) // features
    left = build.bitcast(m.image, array_shape(image.type_name, (rest, features)))
    right = build.bitcast(m.kernel, array_shape(kernel.type_name, (features, outputs)))
    attributes = {"lhs_contracting_dims": "{1}", "rhs_contracting_dims": "{0}"}
    if "operand_precision" in m.root.attributes:
        attributes["operand_precision"] = m.root.attributes["operand_precision"]
    shape = array_shape(result.type_name, (rest, outputs))
    product = build.make("dot", left, right, shape=shape, attributes=attributes)
    return build.bitcast(product, result)


@rule(_CONVOLUTION, layouts="insensitive", floats="finite")
def depthwise_to_multiply(m: AlgsimpMatch) -> Result:
    """A depthwise convolution by kernels of size 1, or over whole dimensions → multiply by the
    broadcast kernel, summed where the kernel is larger than 1."""
    labels = labels_of(m.root)
    features = m.image.shape.dimensions[labels.input_feature_dimension]
    outputs = m.kernel.shape.dimensions[labels.kernel_output_feature_dimension]
    if "?" in "".join(labels) or _groups(m.root) != (features, 1) or outputs != features:
        return None
    if m.kernel.shape.dimensions[labels.kernel_input_feature_dimension] != 1:
        return None
    rows = window_of(m.root).dimensions
    if any(
        row != WindowDimension(row.size, reversal=row.reversal if row.size == 1 else 0)
        for row in rows
    ):
        return Missed("its window has strides, padding or dilation")
    result = m.root.shape.dimensions
    for row, d in zip(rows, labels.output_spatial_dimensions, strict=True):
        if row.size != 1 and result[d] != 1:
            return Missed("a kernel is larger than 1 and slides")
    return _depthwise_product(m, [row.size for row in rows])


def _depthwise_product(m: AlgsimpMatch, sizes: list[int]) -> Instruction:
    build, labels, shape = m.build, labels_of(m.root), m.root.shape
    image = _arranged(m, m.image, [labels.input.index(letter) for letter in labels.output])
    of_kernel = {"b": "i", "f": "o"}
    places = [labels.kernel.index(of_kernel.get(letter, letter)) for letter in labels.output]
    kernel = _arranged(m, m.kernel, places)
    feature = labels.output_feature_dimension
    kept = [d for d, size in enumerate(kernel.shape.dimensions) if size != 1 or d == feature]
    kernel = build.reshape(kernel, [kernel.shape.dimensions[d] for d in kept])
    spread = build.broadcast(kernel, kept, image.shape)
    product = build.make("multiply", image, spread, shape=image.shape)
    summed = [
        d for size, d in zip(sizes, labels.output_spatial_dimensions, strict=True) if size != 1
    ]
    if not summed:
        return product
    zero = build.scalar(0, array_shape("s32"))  # as XLA makes it
    zero = build.make("convert", zero, shape=array_shape(shape.type_name))
    reducer = build.scalar_computation("add", shape.type_name)
    return build.reshape(build.reduce(product, zero, summed, reducer), shape)


def _arranged(m: AlgsimpMatch, x: Instruction, order: list[int]) -> Instruction:
    """An operand with its dimensions in an order, in the type of the result."""
    turned = x if is_identity(order) else m.build.transpose(x, order)
    return m.build.convert(turned, m.root.shape.type_name)


@rule(_CONVOLUTION, option="enable_onednn_support", floats="rounding")
def upcast_convolution(m: AlgsimpMatch) -> Result:
    """A bf16 convolution that oneDNN does not take → f32 convolution between converts, on CPU: one
    of more than 3 spatial dimensions, of batch groups, base dilation, reversal or negative
    padding."""
    types = {i.shape.type_name for i in (m.image, m.kernel, m.root)}
    if not m.options.executing_on_cpu or types != {"bf16"}:
        return None
    rows = window_of(m.root).dimensions
    if (
        1 <= len(rows) <= _MOST_SPATIAL
        and _groups(m.root)[1] == 1
        and all(r.lhs_dilate == 1 and not r.reversal for r in rows)
        and all(r.pad_low >= 0 and r.pad_high >= 0 for r in rows)
    ):
        return None
    wide = [m.build.convert(x, "f32") for x in (m.image, m.kernel)]
    result = m.build.clone(m.root, wide, m.root.shape.with_element_type("f32"))
    return m.build.convert(result, "bf16")


# -- scalar factors -------------------------------------------------------------------------------

_DEEPEST = 8


@rule(_CONVOLUTION, option="enable_scalar_multiply_reduction", floats="finite")
def gather_scalar_factors(m: AlgsimpMatch) -> Result:
    """Constant scalar factors of image, kernel and result → one factor on the smallest of them."""
    if m.root.shape.type_name not in ("bf16", "f32"):
        return None
    counts = [i.shape.element_count() for i in (m.image, m.kernel, m.root)]
    smallest = counts.index(min(counts))
    operands = [m.image, m.kernel]
    factor, found = 1.0, False
    for number in range(2):
        if number == smallest:
            continue
        stripped = _without_factors(m, operands[number], _DEEPEST)
        if stripped is not None:
            operands[number] = stripped[0]
            factor, found = factor * stripped[1], True
    if not found:
        return None
    build = m.build
    if smallest < 2:
        x = operands[smallest]
        operands[smallest] = build.make("multiply", x, build.splat(factor, x.shape), shape=x.shape)
        return build.clone(m.root, operands, m.root.shape)
    product = build.clone(m.root, operands, m.root.shape)
    return build.make("multiply", product, build.splat(factor, m.root.shape), shape=m.root.shape)


def _without_factors(
    m: AlgsimpMatch, x: Instruction, depth: int
) -> tuple[Instruction, float] | None:
    """A value without constant factors, and their product; None where there are none."""
    if not depth or len(x.users) != 1:
        return None
    if x.opcode in (Opcode.TRANSPOSE, Opcode.RESHAPE):
        below = _without_factors(m, x.operands[0], depth - 1)
        return None if below is None else (m.build.clone(x, [below[0]], x.shape), below[1])
    if x.opcode is not Opcode.MULTIPLY:
        return None
    for number in (1, 0):
        value = splat_value(x.operands[number])
        if isinstance(value, float):
            rest = x.operands[1 - number]
            below = _without_factors(m, rest, depth - 1)
            return (rest, value) if below is None else (below[0], below[1] * value)
    for number in (0, 1):
        below = _without_factors(m, x.operands[number], depth - 1)
        if below is not None:
            parts = list(x.operands)
            parts[number] = below[0]
            return m.build.clone(x, parts, x.shape), below[1]
    return None


RULES = (
    gather_scalar_factors,
    convolution_of_empty,
    fold_pad_into_image,
    fold_pad_into_kernel,
    swap_convolution_operands,
    upcast_convolution,
    convolution_to_dot,
    depthwise_to_multiply,
)
