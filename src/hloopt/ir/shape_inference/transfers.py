"""Operations that exchange data with the host or other devices, ordered by tokens."""

from __future__ import annotations

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shape_inference.operation import Operation, show
from hloopt.ir.shapes.shape import Shape, agree, array_shape, tuple_shape
from hloopt.ir.shapes.shape_parser import parse_shape


def infer_send(operation: Operation) -> Shape:
    """The operand, a context and a token."""
    data, _ = operation.take_operands(2)
    return tuple_shape((data, array_shape("u32"), array_shape("token")))


def infer_recv(operation: Operation) -> Shape:
    """The stated data, a context and a token."""
    operation.take_operands(1)
    return tuple_shape((_stated_data(operation), array_shape("u32"), array_shape("token")))


def infer_send_done(operation: Operation) -> Shape:
    operation.take_operands(1)
    return array_shape("token")


def infer_recv_done(operation: Operation) -> Shape:
    """The data of the recv and a token."""
    (started,) = operation.take_operands(1)
    if not started.elements:
        raise HloVerifyError(f"The operand of recv-done must be a recv; got {show(started)}.")
    return tuple_shape((started.elements[0], array_shape("token")))


def infer_infeed(operation: Operation) -> Shape:
    """The stated data and a token."""
    (token,) = operation.take_operands(1)
    _expect_token(token, 0)
    return tuple_shape((_stated_data(operation), array_shape("token")))


def infer_outfeed(operation: Operation) -> Shape:
    """The stated shape, which XLA does not look at; `outfeed_shape` is that of the operand."""
    assert operation.stated is not None
    data, token = operation.take_operands(2)
    _expect_token(token, 1)
    text = operation.attributes.get("outfeed_shape")
    if text is not None and not agree(data, parse_shape(text)):
        raise HloVerifyError(
            f"Expected outfeed shape to be equal to operand's shape {show(data)}, actual shape is "
            f"{show(parse_shape(text))}"
        )
    return operation.stated


def _stated_data(operation: Operation) -> Shape:
    assert operation.stated is not None
    if not operation.stated.elements:
        raise HloVerifyError(
            f"{operation.opcode} gives a tuple of data and a token; got {show(operation.stated)}."
        )
    return operation.stated.elements[0]


def _expect_token(shape: Shape, number: int) -> None:
    if not shape.is_token:
        raise HloVerifyError(
            f"Expected operand {number} to be token-shaped, actual shape is {show(shape)}"
        )
