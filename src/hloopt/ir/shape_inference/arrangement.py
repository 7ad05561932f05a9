"""Operations that move elements: broadcast, transpose, reverse, concatenate, pad, sort."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shape_inference.element_types import higher_precision
from hloopt.ir.shape_inference.operation import Operation, expect_array, show
from hloopt.ir.shapes.shape import Shape, array_shape, same_kind, sizes_agree, tuple_shape


def infer_broadcast(operation: Operation) -> Shape:
    """A scalar operand's own shape.

    XLA reads the dimensions as sizes to put in front when the result shape is left out.
    """
    (operand,) = operation.take_operands(1)
    expect_array(operand, "operand of broadcast")
    if operand.is_unbounded_dynamic:
        raise HloVerifyError(f"Broadcast of an unbounded operand: {show(operand)}.")
    sizes = operation.ints("dimensions") if operand.rank else operation.optional_ints("dimensions")
    if min(sizes, default=0) < 0:
        raise HloVerifyError("Broadcast with negative dimension size.")
    static = (False,) * len(sizes)
    return array_shape(
        operand.type_name, (*sizes, *operand.dimensions), (*static, *operand.dynamic)
    )


def infer_transpose(operation: Operation) -> Shape:
    """The permuted shape, laid out so that no element moves in memory."""
    (operand,) = operation.take_operands(1)
    expect_array(operand, "operand of transpose")
    order = operation.ints("dimensions")
    if sorted(order) != list(range(operand.rank)):
        raise HloVerifyError(
            f"Transpose dimensions [{','.join(map(str, order))}] are not a permutation of the "
            f"operand dimensions (operand shape is {show(operand)})."
        )
    if sorted(operand.layout.minor_to_major) != list(range(operand.rank)):
        raise HloVerifyError(f"The layout of {show(operand)} is not a permutation.")
    new_place = {old: new for new, old in enumerate(order)}
    minor_to_major = tuple(new_place[d] for d in operand.layout.minor_to_major)
    return array_shape(
        operand.type_name,
        tuple(operand.dimensions[d] for d in order),
        tuple(operand.dynamic[d] for d in order),
        operand.layout._replace(minor_to_major=minor_to_major),
    )


def infer_reverse(operation: Operation) -> Shape:
    """The operand's shape."""
    (operand,) = operation.take_operands(1)
    expect_array(operand, "operand of reverse")
    dimensions = operation.ints("dimensions")
    if len(set(dimensions)) != len(dimensions):
        raise HloVerifyError("a dimension number is duplicated in reverse")
    for dimension in dimensions:
        if not (0 <= dimension < operand.rank):
            raise HloVerifyError(
                f"one of the reverse dimensions ({dimension}) is out-of-bounds in shape "
                f"{show(operand)}"
            )
    return operand


def infer_concatenate(operation: Operation) -> Shape:
    """The operands one after the other, in the default layout."""
    operands = operation.operands
    if not operands:
        raise HloVerifyError("Concatenate expects at least one argument.")
    dimension = operation.dimension()
    for operand in operands:
        expect_array(operand, "operand of concatenation")
    first = operands[0]
    if not (0 <= dimension < first.rank):
        raise HloVerifyError(f"Concatenate dimension out of bounds: {dimension}.")
    for operand in operands[1:]:
        _check_concatenated(first, operand, dimension)
    # XLA compares each operand with the first one and keeps the last answer.
    element_type = higher_precision(first.type_name, operands[-1].type_name)
    places = [
        (_joined_size if i == dimension else _shared_size)(operands, i) for i in range(first.rank)
    ]
    return array_shape(
        element_type, tuple(size for size, _ in places), tuple(dynamic for _, dynamic in places)
    )


def _joined_size(operands: Sequence[Shape], i: int) -> tuple[int, bool]:
    sizes = [operand.dimensions[i] for operand in operands]
    size = -1 if min(sizes) < 0 else sum(sizes)
    return size, any(operand.dynamic[i] for operand in operands)


def _shared_size(operands: Sequence[Shape], i: int) -> tuple[int, bool]:
    bounded = [operand for operand in operands if operand.dimensions[i] >= 0]
    if not bounded:
        return -1, True
    is_dynamic = any(operand.dynamic[i] for operand in bounded)
    size = bounded[0].dimensions[i]
    for operand in bounded[1:]:
        if operand.dimensions[i] != size:
            what = "bound" if is_dynamic else "dimension"
            raise HloVerifyError(
                f"Mismatched {what} sizes {size} and {operand.dimensions[i]} in dimension {i}"
            )
    return size, is_dynamic


def _check_concatenated(first: Shape, other: Shape, dimension: int) -> None:
    if first.rank != other.rank:
        raise HloVerifyError(
            f"Cannot concatenate arrays with different ranks: {first.rank} "
            f"({show(first)}) vs {other.rank} ({show(other)})."
        )
    if not same_kind(first, other):
        raise HloVerifyError(
            f"Cannot concatenate arrays with different element types: {show(first)} vs "
            f"{show(other)}."
        )
    for i in range(first.rank):
        a, b = first.dimensions[i], other.dimensions[i]
        if i != dimension and a != b and a >= 0 and b >= 0:
            raise HloVerifyError(
                "Cannot concatenate arrays that differ in dimensions other than the one being "
                f"concatenated. Dimension {i} in both shapes must be equal (or compatible): "
                f"{show(first)} vs {show(other)}."
            )


def infer_pad(operation: Operation) -> Shape:
    """The padded shape, in the default layout; negative padding crops."""
    operand, value = operation.take_operands(2)
    expect_array(operand, "operand of pad")
    if not value.is_scalar:
        raise HloVerifyError("Pad operation does not support non-scalar padding values.")
    from hloopt.ir.attributes.values import parse_padding

    padding = parse_padding(operation.attribute("padding"))
    if len(padding) != operand.rank:
        raise HloVerifyError(
            "The rank of the operand and the padding configuration do not match: "
            f"{show(operand)} vs padding={operation.attribute('padding')}."
        )
    if not same_kind(operand, value):
        raise HloVerifyError("The element types of the operands to Pad do not match.")
    sizes: list[int] = []
    for i, pad in enumerate(padding):
        size = operand.dimensions[i]
        if pad.interior < 0:
            raise HloVerifyError(f"Interior padding cannot be negative in dimension {i}")
        if size >= 0:
            size += pad.low + pad.high + max(size - 1, 0) * pad.interior
            if size < 0:
                raise HloVerifyError(f"Padding result in negative size for dimension {i}")
        sizes.append(size)
    return array_shape(
        higher_precision(operand.type_name, value.type_name), tuple(sizes), operand.dynamic
    )


def infer_sort(operation: Operation) -> Shape:
    """The operand's shape, or the tuple of the operands' shapes."""
    operands = operation.operands
    if not operands:
        raise HloVerifyError("Sort expects at least one operand")
    for operand in operands:
        if len(operands) > 1 or operation.stated is not None:  # XLA reads any single operand
            expect_array(operand, "operand of sort")
        if not sizes_agree(operand.dimensions, operands[0].dimensions):
            raise HloVerifyError(
                "Sort keys and values dimensions must match. Keys shape is: "
                f"{show(operands[0])}\n, Values shape is: {show(operand)}"
            )
    if operation.stated is not None:
        _check_sort(operation)
    return operands[0] if len(operands) == 1 else tuple_shape(operands)


def _check_sort(operation: Operation) -> None:
    """Checks that XLA makes only where the shape is stated: the dimension and the comparison."""
    operands = operation.operands
    dimension = operation.dimension()
    if dimension >= operands[0].rank:
        raise HloVerifyError(
            f"Expected the sort_dimension {dimension} of sort to be smaller than the rank "
            f"{operands[0].rank} of the operand(s)."
        )
    (comparison,) = operation.take_callees(1)
    parameters = [parameter.shape for parameter in comparison.parameters]
    if len(parameters) != 2 * len(operands):
        raise HloVerifyError(
            f"Expected computation called from sort to have {2 * len(operands)} parameters, has "
            f"{len(parameters)}"
        )
    for number, parameter in enumerate(parameters):
        operand = operands[number // 2]
        if not (parameter.is_scalar and same_kind(parameter, operand)):
            raise HloVerifyError(
                f"Expected the {number}-th parameter of the compare computation of sort to have "
                f"shape {operand.type_name}[], but got {show(parameter)}"
            )
    result = comparison.root.shape
    if not (result.is_scalar and result.type_name == "pred"):
        raise HloVerifyError(
            "The Sort compare computation shape does not lead to a scalar predicate shape: "
            f"{show(result)}"
        )
