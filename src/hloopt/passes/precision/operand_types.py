"""The element types that the operands of dots and convolutions give to results."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.shape_inference import infer_shape
from hloopt.ir.shape_inference.element_types import higher_precision


def is_higher(a: str, b: str) -> bool:
    """Whether element type `a` is another one than `b`, and has the higher precision."""
    return a != b and higher_precision(a, b) == a


def inferred_type(operation: Instruction) -> str:
    """The element type that the operands of a dot or convolution give, whatever is stated."""
    shapes = [operand.shape for operand in operation.operands]
    return infer_shape(operation.opcode, shapes, operation.attributes).type_name
