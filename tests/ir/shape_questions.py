"""Questions to shape inference, written as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.ir.attribute_text import split_attributes
from hloopt.ir.opcode import OPCODES
from hloopt.ir.shape import Shape
from hloopt.ir.shape_inference import check_shape
from hloopt.ir.shape_parser import parse_shape

ADD = "(f32[], f32[]) -> f32[]"


@dataclass(frozen=True)
class Value:
    shape: Shape


@dataclass(frozen=True)
class Function:
    """A computation as inference sees it, written `(s32[], f32[2]) -> f32[]`."""

    parameters: Sequence[Value]
    root: Value


def function(signature: str) -> Function:
    parameters, result = signature.split(" -> ")
    shapes = parse_shape(parameters).elements
    return Function([Value(shape) for shape in shapes], Value(parse_shape(result)))


def check(opcode: str, stated: str, operands: str, attributes: str, called: Sequence[str]) -> None:
    check_shape(
        OPCODES[opcode],
        parse_shape(stated),
        parse_shape(f"({operands})").elements,
        split_attributes(attributes),
        [function(signature) for signature in called],
    )
