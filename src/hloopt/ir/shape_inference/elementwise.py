"""Element-wise operations: unary, binary, compare, complex, select, clamp."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.opcode import ELEMENTWISE_BINARY, Opcode
from hloopt.ir.shape_inference.element_types import (
    complex_of,
    component_of,
    higher_precision,
    is_packed,
    with_type,
)
from hloopt.ir.shape_inference.operation import Operation, expect_array, show, show_type
from hloopt.ir.shapes.shape import Shape, array_shape, same_kind, sizes_agree

_FLOATING = frozenset(
    (
        *(Opcode.FLOOR, Opcode.CEIL, Opcode.ROUND_NEAREST_AFZ, Opcode.ROUND_NEAREST_EVEN),
        *(Opcode.CBRT, Opcode.ERF),
    )
)
_FLOATING_OR_COMPLEX = frozenset(
    (
        *(Opcode.ACOS, Opcode.ACOSH, Opcode.ASIN, Opcode.ASINH, Opcode.ATANH, Opcode.COSINE),
        *(Opcode.COSH, Opcode.SINE, Opcode.SINH, Opcode.TAN, Opcode.TANH, Opcode.EXPONENTIAL),
        *(Opcode.EXPONENTIAL_MINUS_ONE, Opcode.LOG, Opcode.LOG_PLUS_ONE, Opcode.LOGISTIC),
        *(Opcode.RSQRT, Opcode.SQRT, Opcode.REAL, Opcode.IMAG),
    )
)
_UNARY_KINDS: dict[Opcode, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(_FLOATING, (("float",), "floating")),
    **dict.fromkeys(_FLOATING_OR_COMPLEX, (("float", "complex"), "floating or complex")),
    Opcode.ABS: (("signed", "float", "complex"), "signed, floating or complex"),
    Opcode.SIGN: (("signed", "float", "complex"), "signed, floating or complex"),
    Opcode.NEGATE: (
        ("signed", "unsigned", "float", "complex"),
        "integral, floating or complex",
    ),
    Opcode.NOT: (("pred", "signed", "unsigned"), "pred or integral"),
    Opcode.POPCNT: (("signed", "unsigned"), "integral"),
    Opcode.COUNT_LEADING_ZEROS: (("signed", "unsigned"), "integral"),
    Opcode.IS_FINITE: (("float",), "floating"),
}
UNARY = frozenset(_UNARY_KINDS)
"""The unary operations whose result shape follows from the operand."""

BINARY = ELEMENTWISE_BINARY - {Opcode.STOCHASTIC_CONVERT}
"""The binary operations whose result shape follows from the operands."""

_ARITHMETIC = frozenset(
    (
        *(Opcode.SUBTRACT, Opcode.DIVIDE, Opcode.POWER, Opcode.REMAINDER, Opcode.SHIFT_LEFT),
        *(Opcode.SHIFT_RIGHT_ARITHMETIC, Opcode.SHIFT_RIGHT_LOGICAL),
    )
)

_LOGICAL_KINDS = ("pred", "signed", "unsigned")


def infer_unary(operation: Operation) -> Shape:
    """The operand's shape, in the layout of the operand."""
    (operand,) = operation.take_operands(1)
    opcode = operation.opcode
    expect_array(operand, "operand of unary operation")
    kinds, wanted = _UNARY_KINDS[opcode]
    assert operand.element_type is not None
    if operand.element_type.kind not in kinds:
        raise HloVerifyError(
            f"Expected element type in shape to be {wanted} for {opcode} operation; "
            f"got {show_type(operand)}."
        )
    match opcode:
        case Opcode.IS_FINITE:
            return with_type(operand, "pred")
        case Opcode.ABS | Opcode.REAL | Opcode.IMAG:
            return with_type(operand, component_of(operand.type_name))
    return operand


def infer_binary(operation: Operation) -> Shape:
    """The common shape of two operands.

    A scalar goes with any array, a dimension of size 1 with any size, an unbounded one takes the
    other's bound. Operands of equal sizes give the layout of the first, others the default one.
    """
    lhs, rhs = operation.take_operands(2)
    opcode = operation.opcode
    expect_array(lhs, f"lhs of binary operation {opcode}")
    expect_array(rhs, f"rhs of binary operation {opcode}")
    _check_binary_type(opcode, lhs)
    if not same_kind(lhs, rhs):
        raise HloVerifyError(
            f"Binary op {opcode} with different element types: {show(lhs)} and {show(rhs)}."
        )
    shape = _common_shape(lhs, rhs)
    if operation.stated is not None:
        _check_not_broadcast(operation, shape)
    match opcode:
        case Opcode.COMPARE:
            return with_type(shape, "pred")
        case Opcode.COMPLEX:
            if not (lhs.element_type is not None and lhs.element_type.is_floating):
                raise HloVerifyError(
                    "Expected element type in shape to be floating for complex compose operation; "
                    f"got {show_type(lhs)}."
                )
            result_type = complex_of(shape.type_name)
            if result_type is None or lhs.element_type is not rhs.element_type:
                raise HloVerifyError("Complex component type is not implemented.")
            return with_type(shape, result_type)
    return shape


def _check_not_broadcast(operation: Operation, shape: Shape) -> None:
    """Scalars and sizes of 1 spread out only when XLA infers a shape that is left out."""
    for operand in operation.operands:
        if not sizes_agree(operand.dimensions, shape.dimensions):
            raise HloVerifyError(
                "Implicit broadcast is not allowed in HLO. Found different shapes for instruction "
                f"{operation.opcode}: output {show(shape)}, operand {show(operand)}"
            )


def _check_binary_type(opcode: Opcode, operand: Shape) -> None:
    assert operand.element_type is not None
    kind = operand.element_type.kind
    if opcode in _ARITHMETIC:
        if kind == "pred":
            raise HloVerifyError(
                f"Expected element type in shape to be arithmetic type for operation {opcode}; "
                f"got {show_type(operand)}."
            )
    elif opcode is Opcode.ATAN2:
        if kind not in ("float", "complex"):
            raise HloVerifyError(
                "Expected input element type to be floating or complex for atan2 operation; "
                f"got {show_type(operand)}."
            )
    elif opcode in (Opcode.AND, Opcode.OR, Opcode.XOR) and kind not in _LOGICAL_KINDS:
        raise HloVerifyError(
            "Expected pred or integral type in argument to and/or operation; "
            f"got {show_type(operand)}."
        )


def _common_shape(lhs: Shape, rhs: Shape) -> Shape:
    if lhs is rhs and not lhs.layout.element_bits and not lhs.is_unbounded_dynamic:
        return lhs
    element_type = higher_precision(lhs.type_name, rhs.type_name)
    if lhs.dimensions == rhs.dimensions:
        dynamic = tuple(a or b for a, b in zip(lhs.dynamic, rhs.dynamic, strict=True))
        shape = array_shape(lhs.type_name, lhs.dimensions, dynamic, lhs.layout)
        return _like(shape, element_type)
    if lhs.is_scalar or rhs.is_scalar:
        array = rhs if lhs.is_scalar else lhs
        return array_shape(element_type, array.dimensions, array.dynamic)
    if lhs.rank != rhs.rank:
        smaller, larger = sorted((lhs, rhs), key=lambda shape: shape.rank)
        raise HloVerifyError(
            f"Shapes must be equal rank, but are {show(smaller)} and {show(larger)}"
        )
    places: list[tuple[int, bool]] = []
    for i in range(lhs.rank):
        place = _merge_dimension(lhs, rhs, i)
        if place is None:
            raise HloVerifyError(
                f"Binary op with incompatible shapes: {show(lhs)} and {show(rhs)}."
            )
        places.append(place)
    sizes, is_dynamic = zip(*places, strict=True)
    return array_shape(element_type, sizes, is_dynamic)


def _like(shape: Shape, element_type: str) -> Shape:
    """`shape` with an element type.

    As XLA has it, unbounded dimensions lose the layout and whole bytes the element size.
    """
    if shape.is_unbounded_dynamic:
        return array_shape(element_type, shape.dimensions, shape.dynamic)
    if shape.layout.element_bits and not is_packed(element_type):
        layout = shape.layout._replace(element_bits=0)
        return array_shape(element_type, shape.dimensions, shape.dynamic, layout)
    return with_type(shape, element_type)


def _merge_dimension(lhs: Shape, rhs: Shape, i: int) -> tuple[int, bool] | None:
    """Size and dynamism of dimension `i` after implicit broadcasting, None if impossible."""
    a, b = lhs.dimensions[i], rhs.dimensions[i]
    if a == 1 or (a < 0 and b not in (1, a)):
        return b, rhs.dynamic[i]
    if a == b:
        return a, lhs.dynamic[i] or rhs.dynamic[i]
    if b == 1 or b < 0:
        return a, lhs.dynamic[i]
    return None


def infer_select(operation: Operation) -> Shape:
    """The shape of the two branches; in the predicate's layout unless that is a scalar."""
    predicate, on_true, on_false = operation.take_operands(3)
    for role, operand in (("pred", predicate), ("on-true", on_true), ("on-false", on_false)):
        expect_array(operand, f"select {role}")
    if predicate.type_name != "pred":
        raise HloVerifyError(
            f"Select's pred operand must have PRED element type; got {show(predicate)}."
        )
    if not (sizes_agree(on_true.dimensions, on_false.dimensions) and same_kind(on_true, on_false)):
        raise HloVerifyError(
            f"Operands to select must be the same shape; got {show(on_true)} and {show(on_false)}."
        )
    element_type = higher_precision(on_true.type_name, on_false.type_name)
    if (
        on_true is on_false
        and predicate.dimensions == on_true.dimensions
        and predicate.layout is on_true.layout
        and True not in (*on_true.dynamic, *predicate.dynamic)
    ):
        return on_true
    if predicate.is_scalar:
        return array_shape(element_type, *_selected((on_true, on_false)), on_true.layout)
    if not all(sizes_agree(predicate.dimensions, s.dimensions) for s in (on_true, on_false)):
        raise HloVerifyError(
            "Operands to select and predicate must be the same shape; "
            f"got {show(on_true)} and {show(on_false)} and {show(predicate)}."
        )
    layout = predicate.layout._replace(element_bits=on_true.layout.element_bits)
    return array_shape(element_type, *_selected((on_true, on_false, predicate)), layout)


def _selected(shapes: Sequence[Shape]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Sizes and dynamism of a selection, of two branches and maybe a predicate.

    Where one branch is unbounded the other decides, else an unbounded operand does.
    """
    on_true, on_false, *_ = shapes
    sizes: list[int] = []
    dynamic: list[bool] = []
    for i, (a, b) in enumerate(zip(on_true.dimensions, on_false.dimensions, strict=True)):
        if (a < 0) != (b < 0):
            bounded = on_true if b < 0 else on_false
            sizes.append(bounded.dimensions[i])
            dynamic.append(bounded.dynamic[i])
        else:
            sizes.append(min(shape.dimensions[i] for shape in shapes))
            dynamic.append(any(shape.dynamic[i] for shape in shapes))
    return tuple(sizes), tuple(dynamic)


def infer_clamp(operation: Operation) -> Shape:
    """The clamped operand's shape; the bounds are scalars or of the same shape."""
    low, operand, high = operation.take_operands(3)
    for role, shape in (("min", low), ("operand", operand), ("max", high)):
        expect_array(shape, f"clamp {role}")
    if not (same_kind(low, operand) and same_kind(high, operand)):
        raise HloVerifyError(f"Clamp with incompatible element types: {show(low, operand, high)}.")
    for bound in (low, high):
        if not (bound.is_scalar or sizes_agree(bound.dimensions, operand.dimensions)):
            raise HloVerifyError(f"Clamp with incompatible shapes: {show(low, operand, high)}.")
    if not (low.is_scalar or high.is_scalar or sizes_agree(low.dimensions, high.dimensions)):
        raise HloVerifyError(f"Clamp with incompatible shapes: {show(low, operand, high)}.")
    return operand
