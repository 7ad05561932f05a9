"""Tuples, and operations whose result is that of a computation they call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shape_inference.operation import Operation, show
from hloopt.ir.shapes.shape import Shape, agree, array_shape, tuple_shape

if TYPE_CHECKING:
    from hloopt.ir.shape_inference.callee import Callee


def infer_operand(operation: Operation) -> Shape:
    """The shape of the first operand, whatever it is."""
    if not operation.operands:
        raise HloVerifyError(f"{operation.opcode} expects an operand")
    return operation.operands[0]


def infer_add_dependency(operation: Operation) -> Shape:
    """The shape of the first of two operands.

    The second is a token, which XLA does not look at where the shape is left out.
    """
    operand, token = operation.take_operands(2)
    if operation.stated is not None and not token.is_token:
        raise HloVerifyError(f"add-dependency waits for a token, not for {show(token)}.")
    return operand


def infer_tuple(operation: Operation) -> Shape:
    """The tuple of the operands' shapes."""
    return tuple_shape(operation.operands)


def infer_get_tuple_element(operation: Operation) -> Shape:
    """One element of the operand's shape."""
    (operand,) = operation.take_operands(1)
    index = operation.integer("index")
    if not operand.is_tuple:
        raise HloVerifyError(
            "Cannot infer shape: attempting to index into non-tuple: " + show(operand)
        )
    if not (0 <= index < len(operand.elements)):
        raise HloVerifyError(
            f"Cannot infer shape: attempt to index out of tuple bounds: {index} >= "
            f"{len(operand.elements)} in shape {show(operand)}"
        )
    return operand.elements[index]


def infer_call(operation: Operation) -> Shape:
    """The root of the callee, whose parameters must match the operands."""
    (callee,) = operation.take_callees(1)
    operands, parameters = operation.operands, callee.parameters
    if len(operands) != len(parameters):
        raise HloVerifyError(
            "Call applied function arity must match number of arguments; got: arity: "
            f"{len(parameters)}, arguments: {len(operands)}; computation signature: "
            f"{signature(callee)}; argument shapes: [{show(*operands)}]."
        )
    for i, (operand, parameter) in enumerate(zip(operands, parameters, strict=True)):
        if not agree(operand, parameter.shape):
            raise HloVerifyError(
                f"Call parameter must match argument; got parameter {i} shape: "
                f"{show(parameter.shape)}, argument shape: {show(operand)}."
            )
    return callee.root.shape


def infer_while(operation: Operation) -> Shape:
    """The shape of the operand, which both computations take and the body returns."""
    body, condition = operation.take_callees(2)
    (init,) = operation.take_operands(1)
    taken: list[Shape] = []
    for callee, name in ((condition, "Condition"), (body, "Body")):
        parameters = callee.parameters
        if len(parameters) != 1:
            raise HloVerifyError(f"{name} must take 1 arguments; got {len(parameters)}.")
        taken.append(parameters[0].shape)
    result = body.root.shape
    predicate = condition.root.shape
    if not (predicate.is_scalar and predicate.type_name == "pred"):
        raise HloVerifyError(f"Condition must return a boolean; got {show(predicate)}.")
    if not all(agree(result, shape) for shape in (*taken, init)):
        raise HloVerifyError(
            "The parameter of condition and body, the result of the body, and init must all have "
            f"the same shape; got Condition: {signature(condition)}; body: {signature(body)}; "
            f"init: {show(init)}."
        )
    return init


def infer_conditional(operation: Operation) -> Shape:
    """The result of the branches, each of which takes one operand.

    Where branches differ in dynamic dimensions, the result is dynamic.
    """
    if not operation.operands:
        raise HloVerifyError("conditional expects an index operand")
    index, *operands = operation.operands
    is_predicate = index.type_name == "pred"
    if not (index.is_scalar and index.type_name in ("pred", "s32")):
        raise HloVerifyError(
            f"Conditional branch index must be a pred or s32 scalar; got {show(index)}."
        )
    if not operation.called:
        raise HloVerifyError("Conditional needs at least one branch computation.")
    if is_predicate:
        operation.take_callees(2)
    if len(operands) != len(operation.called):
        raise HloVerifyError(
            f"Conditional has {len(operation.called)} branch computations, but {len(operands)} "
            "branch operands."
        )
    result = operation.called[0].root.shape
    for i, (branch, operand) in enumerate(zip(operation.called, operands, strict=True)):
        if len(branch.parameters) != 1:
            raise HloVerifyError(
                f"branch computation {i} must take 1 argument; got {len(branch.parameters)}."
            )
        if not agree(branch.parameters[0].shape, operand):
            raise HloVerifyError(
                f"branch operand {i} must match the shape of the only parameter of branch "
                f"computation {i}: got {show(operand)} vs {show(branch.parameters[0].shape)}."
            )
        merged = _merge_results(result, branch.root.shape)
        if merged is None:
            raise HloVerifyError(
                f"the result of branch 0 computation and branch {i} computation must have the "
                f"same shape; got {show(result)} vs {show(branch.root.shape)}."
            )
        result = merged
    return result


def _merge_results(a: Shape, b: Shape) -> Shape | None:
    """`a`, dynamic where `b` is; None where they differ otherwise. O(number of subshapes)."""
    if a is b:
        return a
    if not agree(a, b):
        return None
    merged: list[Shape] = []  # complete subshapes, a stack in post-order
    pairs = list(zip(a.subshapes(), b.subshapes(), strict=True))
    for (_, x), (_, y) in reversed(pairs):
        if x.is_tuple:
            elements = [merged.pop() for _ in x.elements]
            merged.append(tuple_shape(elements))
        else:
            dynamic = tuple(p or q for p, q in zip(x.dynamic, y.dynamic, strict=True))
            merged.append(array_shape(x.type_name, x.dimensions, dynamic, x.layout, x.is_buffer))
    return merged.pop()


def signature(callee: Callee) -> str:
    """The signature of a computation as messages show it."""
    parameters = ", ".join(show(parameter.shape) for parameter in callee.parameters)
    return f"({parameters}) -> {show(callee.root.shape)}"
