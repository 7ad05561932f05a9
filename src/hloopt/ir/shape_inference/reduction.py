"""Operations that apply a computation to elements: reduce, map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shape_inference.operation import Operation, expect_array, show
from hloopt.ir.shapes.shape import Shape, agree, array_shape, same_kind, sizes_agree, tuple_shape

if TYPE_CHECKING:
    from hloopt.ir.shape_inference.callee import Callee


def infer_reduce(operation: Operation) -> Shape:
    """The inputs without the reduced dimensions, in the default layout.

    Element types are those of the reduction function's result; a tuple where that is one.
    """
    operands = operation.operands
    count = len(operands) // 2
    if not (operands and len(operands) % 2 == 0):
        raise HloVerifyError(
            f"reduce expects an even number of operands, but has {len(operands)} operands"
        )
    inputs, initial = operands[:count], operands[count:]
    for shape in inputs:
        expect_array(shape, "operand of reduce")
    _check_sizes(inputs)
    dimensions = operation.ints("dimensions")
    for i, dimension in enumerate(dimensions):
        if not (0 <= dimension < inputs[0].rank):
            raise HloVerifyError(
                f"Reducing out-of-bounds dimension {dimension} in shape {show(inputs[0])}."
            )
        if dimension in dimensions[:i]:
            raise HloVerifyError(f"Duplicate reduction dimension: {dimension}")
    (reducer,) = operation.take_callees(1)
    check_reducer(reducer, initial, inputs)
    kept = [i for i in range(inputs[0].rank) if i not in dimensions]
    kept_sizes = tuple(inputs[0].dimensions[i] for i in kept)
    kept_dynamic = tuple(inputs[0].dynamic[i] for i in kept)
    results = [
        array_shape(accumulator.type_name, kept_sizes, kept_dynamic)
        for accumulator in accumulators(reducer)
    ]
    return tuple_shape(results) if reducer.root.shape.is_tuple else results[0]


def _check_sizes(inputs: Sequence[Shape]) -> None:
    for shape in inputs[1:]:
        if not sizes_agree(inputs[0].dimensions, shape.dimensions):
            raise HloVerifyError(
                "All reduced tensors must have compatible dimension; got "
                f"{show(inputs[0])} vs {show(shape)}."
            )


def accumulators(reducer: Callee) -> Sequence[Shape]:
    """The results of a reduction function: the elements of its tuple, or its only result."""
    root = reducer.root.shape
    return root.elements if root.is_tuple else (root,)


def check_reducer(reducer: Callee, initial: Sequence[Shape], inputs: Sequence[Shape]) -> None:
    """Check that a function reduces `inputs` starting with `initial`. Raises HloVerifyError."""
    count = len(inputs)
    parameters = [parameter.shape for parameter in reducer.parameters]
    if len(parameters) != 2 * count:
        raise HloVerifyError(
            f"Reduction function must take {2 * count} parameters, but takes {len(parameters)} "
            "parameter(s)."
        )
    root = reducer.root.shape
    if count > 1 or root.is_tuple:
        has = f"has {len(root.elements)} elements" if root.is_tuple else "produces a scalar"
        if not (root.is_tuple and len(root.elements) == count):
            raise HloVerifyError(
                f"Reduction function must produce a tuple with {count} elements, but {has}"
            )
    results = accumulators(reducer)
    for i, result in enumerate(results):
        if not result.is_scalar:
            raise HloVerifyError(
                f"Reduction function must produce a scalar at index {i}, but has shape: "
                f"{show(result)}"
            )
        if not agree(parameters[i], result):
            raise HloVerifyError(
                f"Reduction function's {i}-th parameter shape differs from the result shape: "
                f"{show(parameters[i])} vs {show(result)}"
            )
        if not agree(parameters[count + i], result, any_precision=True):
            raise HloVerifyError(
                f"Reduction function's {count + i}-th parameter shape must match the result "
                f"shape, but got {show(parameters[count + i])} vs {show(result)}."
            )
        if not agree(result, initial[i], any_precision=True):
            raise HloVerifyError(
                f"Reduction function's accumulator shape at index {i} differs from the "
                f"init_value shape: {show(result)} vs {show(initial[i])}"
            )
        if not (parameters[count + i].is_scalar and same_kind(parameters[count + i], inputs[i])):
            raise HloVerifyError(
                f"Reduction function's {count + i}-th parameter shape differs from the input "
                f"type element type: {show(parameters[count + i])} vs "
                f"{inputs[i].type_name}[]"
            )


def infer_map(operation: Operation) -> Shape:
    """The shape of the operands, all of equal sizes or scalars, with the function's result type.

    XLA looks at the dimensions only where the shape is left out.
    """
    operands = operation.operands
    if not operands:
        raise HloVerifyError("Map expects at least one argument.")
    (function,) = operation.take_callees(1)
    first = operands[0]
    for shape in operands:
        expect_array(shape, "operand of map")
        if first.is_scalar and same_kind(first, shape):
            first = shape
        elif not (
            sizes_agree(shape.dimensions, first.dimensions)
            or (shape.is_scalar and same_kind(shape, first))
        ):
            raise HloVerifyError(
                "Map operation requires all operands to have the same shape; got: "
                f"{show(*operands)}."
            )
    dimensions = operation.optional_ints("dimensions")
    if not (
        operation.stated is not None
        or "dimensions" not in operation.attributes
        or dimensions == tuple(range(first.rank))
    ):
        raise HloVerifyError(
            "Map applied to a subset of dimensions currently not supported: arg_dimension_size: "
            f"{first.rank}, requested map dimensions: {dimensions}."
        )
    parameters = [parameter.shape for parameter in function.parameters]
    if len(parameters) != len(operands):
        raise HloVerifyError(
            "Map applied function arity must match number of arguments; got: arity: "
            f"{len(parameters)}, arguments: {len(operands)}."
        )
    result = function.root.shape
    if not result.is_scalar:
        raise HloVerifyError(
            f"Mapped computation's result has to be a scalar; got: {show(result)}."
        )
    for i, (parameter, operand) in enumerate(zip(parameters, operands, strict=True)):
        if not parameter.is_scalar:
            raise HloVerifyError(
                f"Mapped computation's parameter has to be a scalar; got parameter {i} shape: "
                f"{show(parameter)}."
            )
        if not same_kind(parameter, operand):
            raise HloVerifyError(
                "Mapped computation's parameter type has to match argument element type; got "
                f"parameter {i} shape: {show(parameter)}, argument shape: {show(operand)}."
            )
    return array_shape(result.type_name, first.dimensions, first.dynamic)
