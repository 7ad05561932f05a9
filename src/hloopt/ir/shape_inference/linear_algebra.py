"""FFT, Cholesky, triangular solve and batch normalization."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shape_inference.element_types import complex_of, component_of
from hloopt.ir.shape_inference.operation import Operation, expect_array, show, show_type
from hloopt.ir.shapes.shape import Shape, array_shape, same_kind, sizes_agree, tuple_shape


def infer_fft(operation: Operation) -> Shape:
    """The operand's shape; a real transform halves or doubles the innermost dimension."""
    (operand,) = operation.take_operands(1)
    expect_array(operand, "operand of fft")
    kind = operation.attribute("fft_type")
    lengths = operation.ints("fft_length")
    if not (1 <= len(lengths) <= 3):
        raise HloVerifyError(f"FFT only supports ranks 1-3; got {len(lengths)}.")
    if operand.rank < len(lengths):
        raise HloVerifyError(
            f"FFT requires input of at least same rank as FFT rank; got {show(operand)}."
        )
    if kind not in ("FFT", "IFFT", "RFFT", "IRFFT"):
        raise HloVerifyError(f"unknown FFT type {kind}.")
    assert operand.element_type is not None
    if kind == "RFFT":
        result_type = complex_of(operand.type_name)
        if result_type is None:
            raise HloVerifyError(
                f"RFFT requires F32 or F64 input type, found {show_type(operand)}."
            )
        _check_lengths(operand, lengths, kind)
        return _with_innermost(operand, result_type, lengths[-1] // 2 + (lengths[-1] > 0))
    if operand.element_type.kind != "complex":
        raise HloVerifyError(f"{kind} requires complex input type, found {show_type(operand)}.")
    if kind != "IRFFT":
        return operand
    _check_lengths(operand, lengths[:-1], kind, 1)
    half = lengths[-1] // 2 + 1
    innermost = operand.dimensions[-1]
    if not (innermost in (half, -1) or lengths[-1] == 0):
        raise HloVerifyError(
            "IRFFT requires innermost dimension matches fft_length/2+1 but dimension "
            f"{operand.rank - 1} is {innermost} and should be {half}."
        )
    return _with_innermost(operand, component_of(operand.type_name), lengths[-1])


def _check_lengths(operand: Shape, lengths: Sequence[int], kind: str, skipped: int = 0) -> None:
    """Compare lengths with the dimensions before the last `skipped` ones."""
    first = operand.rank - skipped - len(lengths)
    for d, length in enumerate(lengths, first):
        may_be_unbounded = not skipped  # as XLA has it
        if operand.dimensions[d] != length and not (may_be_unbounded and operand.dimensions[d] < 0):
            raise HloVerifyError(
                f"{kind} requires innermost dimensions match fft_length but dimension {d} is "
                f"{operand.dimensions[d]} and should be {length}."
            )


def _with_innermost(operand: Shape, element_type: str, size: int) -> Shape:
    # An unbounded dimension is bound by the length, so it is static in the result.
    dynamic = operand.dynamic[-1] and operand.dimensions[-1] >= 0
    return array_shape(
        element_type,
        (*operand.dimensions[:-1], size),
        (*operand.dynamic[:-1], dynamic),
        operand.layout._replace(element_bits=0),
    )


def _is_square(shape: Shape) -> bool:
    return sizes_agree(shape.dimensions[-1:], shape.dimensions[-2:-1])


def infer_cholesky(operation: Operation) -> Shape:
    """The operand's shape: a batch of square matrices."""
    (a,) = operation.take_operands(1)
    expect_array(a, "operand of cholesky")
    assert a.element_type is not None
    if a.element_type.kind not in ("float", "complex"):
        raise HloVerifyError(
            "Expected element type in shape to be floating or complex for Cholesky; got "
            f"{show_type(a)}."
        )
    if a.rank < 2:
        raise HloVerifyError(
            f"The 'a' argument to Cholesky must have rank >= 2, got shape {show(a)}"
        )
    if not _is_square(a):
        raise HloVerifyError(
            f"The two minor dimensions of 'a' must have compatible size, got {show(a)}."
        )
    return a


def infer_triangular_solve(operation: Operation) -> Shape:
    """The shape of the right-hand sides."""
    a, b = operation.take_operands(2)
    expect_array(a, "operand a of triangular-solve")
    expect_array(b, "operand b of triangular-solve")
    assert a.element_type is not None
    if not (a.element_type is b.element_type and a.element_type.kind in ("float", "complex")):
        raise HloVerifyError(
            "Expected element types in shape to be floating or complex and identical for "
            f"TriangularSolve; got {show_type(a)} and {show_type(b)}."
        )
    if a.rank < 2:
        raise HloVerifyError(
            f"The 'a' argument to TriangularSolve must have rank >= 2, got shape {show(a)}"
        )
    if a.rank != b.rank:
        raise HloVerifyError(
            f"Arguments to triangular solve must have equal rank; got {show(b)} and {show(a)}."
        )
    if not _is_square(a):
        raise HloVerifyError(
            f"The two minor dimensions of 'a' must have equal size, got {show(a)}."
        )
    shared = -2 if operation.flag("left_side") else -1
    if not sizes_agree(a.dimensions[-1:], (b.dimensions[shared],)):
        raise HloVerifyError(
            f"The shared dimension of 'a' and 'b' does not match, got shapes {show(a)} and "
            f"{show(b)}"
        )
    if a.dimensions[:-2] != b.dimensions[:-2]:
        raise HloVerifyError(
            "The leading batch dimensions of the arguments to triangular solve must be equal; got "
            f"{show(b)} and {show(a)}."
        )
    transpose = operation.attributes.get("transpose_a", "TRANSPOSE_INVALID")
    if transpose not in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
        raise HloVerifyError(f"Invalid transpose option value for triangular solve ({transpose}).")
    return b


def infer_batch_norm_training(operation: Operation) -> Shape:
    """The normalized operand, the batch's mean and its variance."""
    operand, feature = _check_batch_norm(operation, 3, ("scale factor", "offset factor"))
    return tuple_shape((operand, feature, feature))


def infer_batch_norm_inference(operation: Operation) -> Shape:
    """The operand's shape."""
    roles = ("scale factor", "offset factor", "mean", "variance")
    return _check_batch_norm(operation, 5, roles)[0]


def infer_batch_norm_grad(operation: Operation) -> Shape:
    """The gradients of the operand, the scale and the offset."""
    operand, feature = _check_batch_norm(operation, 5, ("scale factor", "mean", "variance"))
    gradient = operation.operands[4]
    expect_array(gradient, "output gradient of batch-norm-grad")
    if operand.rank != gradient.rank:
        raise HloVerifyError(
            f"Ranks of operand and output gradient of batch-norm-grad differ: {show(operand)} and "
            f"{show(gradient)}."
        )
    if not same_kind(operand, gradient):
        raise HloVerifyError(
            "The inputs should have the same element type for batch-norm-grad, but the element "
            f"type of output_grad is {show_type(gradient)} and that of the operand "
            f"{show_type(operand)}."
        )
    for d, (size, other) in enumerate(zip(operand.dimensions, gradient.dimensions, strict=True)):
        if not (size == other or min(size, other) < 0):
            raise HloVerifyError(
                "The bounds of operand shape should be compatible with output_grad's, but the "
                f"bound of operand_shape at dimension {d} is {size} and the bound of "
                f"output_grad_shape is {other}."
            )
    return tuple_shape((operand, feature, feature))


def _check_batch_norm(
    operation: Operation, operand_count: int, roles: Sequence[str]
) -> tuple[Shape, Shape]:
    """The operand, and the shape of a value per feature."""
    operand, *others = operation.take_operands(operand_count)
    opcode = operation.opcode
    expect_array(operand, f"operand of {opcode}")
    index = operation.integer("feature_index")
    if not (0 <= index < operand.rank):
        raise HloVerifyError(
            f"Expected feature_index of {opcode} to be smaller than the rank of operand_shape; got "
            f"feature_index {index}, and rank {operand.rank}."
        )
    assert operand.element_type is not None
    if not operand.element_type.is_floating:
        raise HloVerifyError(
            f"The operand to {opcode} must have a floating point element type, but the shape is "
            f"{show_type(operand)}."
        )
    count = operand.dimensions[index]
    for role, shape in zip(roles, others, strict=False):
        expect_array(shape, f"{role} of {opcode}")
        if shape.rank != 1:
            raise HloVerifyError(
                f"{role.split()[0].capitalize()} input of {opcode} must have rank 1, but has rank "
                f"{shape.rank}."
            )
        if not same_kind(operand, shape):
            raise HloVerifyError(
                f"The inputs should have the same element type for {opcode}, but the shape of "
                f"{role} is {show_type(shape)} and the shape of operand is {show_type(operand)}."
            )
        if not sizes_agree(shape.dimensions, (count,)):
            raise HloVerifyError(
                f"The size of {role} should be compatible with feature count, but the size of "
                f"{role} is {shape.dimensions[0]} and the feature count is {count}."
            )
    return operand, array_shape(operand.type_name, (count,), (operand.dynamic[index],))
