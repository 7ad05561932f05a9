"""Operations on the sizes of dimensions, and those that take or keep part of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shape_inference.operation import Operation, expect_array, show
from hloopt.ir.shape_inference.reduction import accumulators
from hloopt.ir.shapes.shape import Shape, agree, array_shape, tuple_shape

if TYPE_CHECKING:
    from hloopt.ir.shape_inference.callee import Callee

_LARGEST_S32 = 2**31 - 1


def infer_get_dimension_size(operation: Operation) -> Shape:
    """An s32 scalar."""
    (operand,) = operation.take_operands(1)
    dimension = _check_dimension(operation, operand, "GetDimensionSize")
    if operand.dimensions[dimension] > _LARGEST_S32:
        raise HloVerifyError(
            f"GetDimensionSize's input shape is {show(operand)}, dimension {dimension} exceeds the "
            f"largest s32, {_LARGEST_S32}."
        )
    return array_shape("s32")


def infer_set_dimension_size(operation: Operation) -> Shape:
    """The operand's shape with one dimension dynamic."""
    operand, value = operation.take_operands(2)
    dimension = _check_dimension(operation, operand, "SetDimensionSize")
    if not (value.is_scalar and value.type_name == "s32"):
        raise HloVerifyError(f"SetDimensionSize's value has to be S32 scalar, got {show(value)}")
    dynamic = tuple(d == dimension or is_dynamic for d, is_dynamic in enumerate(operand.dynamic))
    return array_shape(
        operand.type_name, operand.dimensions, dynamic, operand.layout, operand.is_buffer
    )


def _check_dimension(operation: Operation, operand: Shape, title: str) -> int:
    if not operand.is_buffer:  # XLA does not tell buffers from arrays here
        expect_array(operand, f"operand of {operation.opcode}")
    dimension = operation.dimension()
    if not (0 <= dimension < operand.rank):
        raise HloVerifyError(f"{title} dimension out of bounds: {dimension}.")
    return dimension


def infer_topk(operation: Operation) -> Shape:
    """Values and indices, `k` of each along the last dimension, which is static then."""
    (operand,) = operation.take_operands(1)
    expect_array(operand, "operand of topk")
    k = operation.integer("k")
    if not (operand.rank > 0 and 0 <= k <= operand.dimensions[-1]):
        raise HloVerifyError(f"k={k} is larger than the last dimension of {show(operand)}")
    sizes, dynamic = (*operand.dimensions[:-1], k), (*operand.dynamic[:-1], False)
    return tuple_shape(
        (array_shape(operand.type_name, sizes, dynamic), array_shape("s32", sizes, dynamic))
    )


def infer_scan(operation: Operation) -> Shape:
    """The result of a scan's computation, outputs stacked along the scanned dimension.

    Operands are inputs and then `num_carries` carries, results outputs and then carries.
    """
    operands = operation.operands
    carries = operation.integer("num_carries")
    if not (0 <= carries <= len(operands)):
        raise HloVerifyError(
            f"scan expects at least {carries} operands to match the number of carries, but has "
            f"{len(operands)} operands"
        )
    if carries >= len(operands):
        raise HloVerifyError("Cannot infer shape for scan with no inputs")
    scanned = operands[0]
    expect_array(scanned, "input of scan")
    dimension = operation.dimension()
    if not (0 <= dimension < scanned.rank):
        raise HloVerifyError(f"Scan dimension {dimension} is out of bounds in {show(scanned)}.")
    (computation,) = operation.take_callees(1)
    if len(computation.parameters) != len(operands):
        raise HloVerifyError(
            f"scan expects {len(operands)} operands to match the number of parameters of to_apply, "
            f"but to_apply has {len(computation.parameters)} parameters"
        )
    root = computation.root.shape
    results = accumulators(computation)
    if len(results) < carries:
        raise HloVerifyError(
            f"Scan computation returns {show(root)}, which has fewer than {carries} carries."
        )
    if operation.stated is not None:
        _check_scanned(operation, computation, dimension, carries)
    outputs = [
        _stack(output, dimension, scanned.dimensions[dimension])
        for output in results[: len(results) - carries]
    ]
    shapes = [*outputs, *results[len(outputs) :]]
    return tuple_shape(shapes) if root.is_tuple else shapes[0]


def _check_scanned(operation: Operation, computation: Callee, dimension: int, carries: int) -> None:
    """Checks that XLA makes only where the shape is stated: slices, carries and parameters
    agree."""
    operands = operation.operands
    inputs = len(operands) - carries
    parameters = [parameter.shape for parameter in computation.parameters]
    for number, (operand, parameter) in enumerate(zip(operands, parameters, strict=True)):
        sizes = list(operand.dimensions)
        if number < inputs and dimension < len(sizes):
            del sizes[dimension]
        if not (
            operand.is_array and agree(array_shape(operand.type_name, tuple(sizes)), parameter)
        ):
            raise HloVerifyError(
                f"Shapes of operand {number} and to_apply computation parameter are inconsistent: "
                f"{show(operand)} and {show(parameter)}"
            )
    results = accumulators(computation)
    for number, (parameter, result) in enumerate(
        zip(parameters[inputs:], results[len(results) - carries :], strict=True)
    ):
        if not agree(parameter, result):
            raise HloVerifyError(
                f"Shapes of parameter {inputs + number} and root in to_apply computation are "
                f"inconsistent: {show(parameter)} and {show(result)}"
            )


def _stack(shape: Shape, dimension: int, size: int) -> Shape:
    expect_array(shape, "output of scan")
    if dimension > shape.rank:
        raise HloVerifyError(
            f"Scan dimension {dimension} is out of bounds in the output {show(shape)}."
        )
    sizes = list(shape.dimensions)
    sizes.insert(dimension, size)
    return array_shape(shape.type_name, tuple(sizes), tuple(size < 0 for size in sizes))
