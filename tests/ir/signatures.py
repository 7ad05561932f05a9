"""Computations as shape inference sees them, written `(s32[], f32[2]) -> f32[]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.ir import Shape, parse_shape


@dataclass(frozen=True)
class Value:
    shape: Shape


@dataclass(frozen=True)
class Function:
    parameters: Sequence[Value]
    root: Value


def function(signature: str) -> Function:
    parameters, result = signature.split(" -> ")
    shapes = parse_shape(parameters).elements
    return Function([Value(shape) for shape in shapes], Value(parse_shape(result)))


ADD = "(f32[], f32[]) -> f32[]"
