"""Convolutions in groups as convolutions without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hloopt.ir.attributes.typed import labels_of, window_of
from hloopt.ir.attributes.values import Window, WindowDimension, parse_int
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import nest_values
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.rewriting.rules import Builder
from hloopt.passes.rewriting.rules.build import format_window

_Conversion: TypeAlias = tuple[str, Callable[[Instruction], Instruction]]
"""A remark, and a function that makes the new value."""
Predicate = Callable[[Instruction], bool]
_WIDE = {"float": "f32", "signed": "s32", "unsigned": "u32"}
"""The type for sums of a kind of narrow numbers."""


@register(
    "convolution-group-converter",
    preserves="finite",
    xla=XlaPass(
        "ConvolutionGroupConverter", "xla/hlo/transforms/simplifiers/convolution_group_converter.h"
    ),
)
class ConvolutionGroupConverter(ModulePass):
    """Make a convolution without groups of one with feature groups, or one with batch groups.

    The groups become a spatial dimension in which each window sees one of them. With one input
    feature a group, the kernel is spread over all input features instead, zero but in its own
    group; or, without `filter_expansion`, the output features of a group become a spatial
    dimension and groups stay. With one batch element and one output feature a batch group, the
    whole convolution is done, masked and summed. Dynamic sizes and control dependencies stay, and
    so do fusions' insides. Linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        should_expand: bool | Predicate = option(True, "which convolutions with groups to convert")
        is_cost_viable: bool | Predicate = option(
            True, "for which convolutions groups may stay groups; masks are made for others"
        )
        convert_batch_groups_only: bool = option(False, "convert batch groups, not feature groups")
        filter_expansion: bool = option(True, "use masks where groups have one feature")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        touched: dict[Computation, None] = {}
        for convolution in list(module.instructions(Opcode.CONVOLUTION)):
            made = None if convolution.parent.is_fusion else self._converter(convolution)
            if made is None:
                continue
            if reason := _why_not(convolution):
                context.missed(convolution, reason)
                continue
            what, convert = made
            if not context.apply(convolution, what):
                break
            context.count("convolutions converted")
            touched[convolution.parent] = None
            replace_instruction(convolution, convert(convolution))
        repair_schedule(touched)
        return bool(touched)

    def _converter(self, convolution: Instruction) -> _Conversion | None:
        """The conversion of a convolution; None where it has no groups to convert."""
        options = self.options
        is_sparse = any(operand.shape.is_tuple for operand in convolution.operands)
        if is_sparse or not _holds(options.should_expand, convolution):
            return None
        labels = labels_of(convolution)
        source, kernel = (operand.shape.dimensions for operand in convolution.operands)
        features = kernel[labels.kernel_output_feature_dimension]
        use_mask = options.filter_expansion or not _holds(options.is_cost_viable, convolution)
        if options.convert_batch_groups_only:
            count = _groups(convolution, "batch_group_count")
            batch = source[labels.input_batch_dimension]
            if count == 1:
                return None
            if count != features or count != batch:
                return "its batch groups become a spatial dimension", _as_spatial_dimension
            return ("done as a whole and masked", _mask_result) if use_mask else None
        count = _groups(convolution, "feature_group_count")
        if count == 1:
            return None
        if kernel[labels.kernel_input_feature_dimension] != 1:
            return "its feature groups become a spatial dimension", _as_spatial_dimension
        if use_mask:
            is_kept = not options.filter_expansion and count == features
            return None if is_kept else ("its kernel has all input features", _mask_kernel)
        if count == features:
            return None
        return "the features of a group become a spatial dimension", _multiplier_as_dimension


def _holds(predicate: bool | Predicate, convolution: Instruction) -> bool:
    return predicate if isinstance(predicate, bool) else predicate(convolution)


def _groups(convolution: Instruction, name: str) -> int:
    return parse_int(convolution.attributes.get(name, "1"))


def _why_not(convolution: Instruction) -> str | None:
    """The reason why a convolution with groups must stay, or None."""
    shapes = (convolution.shape, *(operand.shape for operand in convolution.operands))
    if any(shape.is_dynamic for shape in shapes):
        return "its sizes are dynamic"
    if convolution.has_control_dependencies:
        return "it has control dependencies"
    return None


def _convolve(
    build: Builder,
    old: Instruction,
    operands: list[Instruction],
    shape: Shape,
    changes: dict[str, str | None],
) -> Instruction:
    """A convolution like another, with other operands, result and attributes."""
    made = build.clone(old, operands, shape)
    for name, value in changes.items():
        if value is not None or name in made.attributes:
            made.set_attribute(name, value)
    return made


def _split(sizes: tuple[int, ...], dimension: int, outer: int) -> tuple[int, ...]:
    """Sizes with one dimension as two, the first of a given size."""
    inner = sizes[dimension] // outer
    return (*sizes[:dimension], outer, inner, *sizes[dimension + 1 :])


def _inserted(labels: str, position: int, label: str) -> str:
    return labels[:position] + label + labels[position:]


def _with_row(convolution: Instruction, row: WindowDimension) -> str:
    return format_window(Window((*window_of(convolution).dimensions, row)))


def _as_spatial_dimension(convolution: Instruction) -> Instruction:
    """Groups as a spatial dimension: input dilated by their number, so that window n sees input n
    with kernel n."""
    labels = labels_of(convolution)
    source, kernel = convolution.operands
    in_batch = _groups(convolution, "batch_group_count")
    count = in_batch if in_batch > 1 else _groups(convolution, "feature_group_count")
    grouped = labels.input_batch_dimension if in_batch > 1 else labels.input_feature_dimension
    out, result = labels.kernel_output_feature_dimension, labels.output_feature_dimension
    new = str(len(labels.input_spatial_dimensions))
    build = Builder(convolution.parent)
    operands = [
        build.reshape(source, _split(source.shape.dimensions, grouped, count)),
        build.reshape(kernel, _split(kernel.shape.dimensions, out, count)),
    ]
    sizes = _split(convolution.shape.dimensions, result, count)
    text = (
        f"{_inserted(labels.input, grouped, new)}_{_inserted(labels.kernel, out, new)}"
        f"->{_inserted(labels.output, result, new)}"
    )
    row = WindowDimension(size=count, stride=count - 1, lhs_dilate=count)
    made = _convolve(
        build, convolution, operands, array_shape(convolution.shape.type_name, sizes),
        {
            "window": _with_row(convolution, row),
            "dim_labels": text,
            "batch_group_count": None,
            "feature_group_count": None,
        },
    )  # fmt: skip
    return build.reshape(made, convolution.shape)


def _multiplier_as_dimension(convolution: Instruction) -> Instruction:
    """Output features of a group as a spatial dimension of the kernel, which each window sees in
    another place; the input has the size 1 in it."""
    labels = labels_of(convolution)
    source, kernel = convolution.operands
    count = _groups(convolution, "feature_group_count")
    out, result = labels.kernel_output_feature_dimension, labels.output_feature_dimension
    each = kernel.shape.dimensions[out] // count
    new = str(len(labels.input_spatial_dimensions))
    build = Builder(convolution.parent)
    operands = [
        build.reshape(source, (*source.shape.dimensions, 1)),
        build.reshape(kernel, _split(kernel.shape.dimensions, out, count)),
    ]
    sizes = _split(convolution.shape.dimensions, result, count)
    text = (
        f"{labels.input}{new}_{_inserted(labels.kernel, out + 1, new)}"
        f"->{_inserted(labels.output, result + 1, new)}"
    )
    row = WindowDimension(size=each, pad_low=each - 1, pad_high=each - 1, reversal=1)
    made = _convolve(
        build, convolution, operands, array_shape(convolution.shape.type_name, sizes),
        {"window": _with_row(convolution, row), "dim_labels": text},
    )  # fmt: skip
    return build.reshape(made, convolution.shape)


def _mask_kernel(convolution: Instruction) -> Instruction:
    """The kernel on all input features, zero where a feature is not of the group."""
    labels = labels_of(convolution)
    source, kernel = convolution.operands
    count = _groups(convolution, "feature_group_count")
    into, out = labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension
    sizes = list(kernel.shape.dimensions)
    each = sizes[out] // count
    others = [d for d in range(len(sizes)) if d != into]
    sizes[into] = count
    shape = array_shape(kernel.shape.type_name, tuple(sizes), layout=kernel.shape.layout)
    build = Builder(convolution.parent)
    mask = _same(build, shape, (into, range(count)), (out, [n // each for n in range(sizes[out])]))
    flat = build.reshape(kernel, [kernel.shape.dimensions[d] for d in others])
    wide = build.broadcast(flat, others, shape)
    operands = [source, build.select(mask, wide, build.splat(0, shape))]
    changes: dict[str, str | None] = {"feature_group_count": None}
    return _convolve(build, convolution, operands, convolution.shape, changes)


def _mask_result(convolution: Instruction) -> Instruction:
    """Every batch element with every kernel; each feature keeps the element of its group."""
    labels = labels_of(convolution)
    count = _groups(convolution, "batch_group_count")
    batch, feature = labels.output_batch_dimension, labels.output_feature_dimension
    sizes = list(convolution.shape.dimensions)
    sizes[batch] = count
    old = convolution.shape
    shape = array_shape(old.type_name, tuple(sizes), layout=old.layout)
    build = Builder(convolution.parent)
    mask = _same(build, shape, (batch, range(count)), (feature, range(count)))
    changes: dict[str, str | None] = {"batch_group_count": None}
    whole = _convolve(build, convolution, list(convolution.operands), shape, changes)
    element = old.element_type
    assert element is not None
    wide = old.type_name if element.bits >= 32 else _WIDE.get(element.kind, old.type_name)
    masked = build.convert(build.select(mask, whole, build.splat(0, shape)), wide)
    rows = [
        WindowDimension(size=count, stride=count) if d == batch else WindowDimension()
        for d in range(old.rank)
    ]
    summed = build.make(
        Opcode.REDUCE_WINDOW,
        *(masked, build.scalar(0, masked.shape)),
        shape=old.with_element_type(wide),
        called=(build.scalar_computation(Opcode.ADD, wide),),
        attributes={"window": format_window(Window(tuple(rows)))},
    )
    return build.make(Opcode.CONVERT, summed, shape=old)


def _same(
    build: Builder, shape: Shape, a: tuple[int, Sequence[int]], b: tuple[int, Sequence[int]]
) -> Instruction:
    """Whether two lists of numbers, each along one dimension of a shape, agree."""
    sides = []
    for dimension, numbers in (a, b):
        texts = [str(number) for number in numbers]
        vector = array_shape("s32", (len(texts),))
        constant = build.make(
            Opcode.CONSTANT, shape=vector, payload=nest_values(texts, vector.dimensions)
        )
        places = array_shape("s32", shape.dimensions, layout=shape.layout)
        sides.append(build.broadcast(constant, [dimension], places))
    return build.compare("EQ", sides[0], sides[1])
