"""Modules of one instruction, for tests of kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.interpreter.running import run

from hloopt.interpreter.values import Array, Value, dtype_of
from hloopt.ir.shapes.element_type import ELEMENT_TYPES


def array_of(element: str, values: object) -> Array:
    """Values as an array of an HLO element type."""
    return np.asarray(values).astype(dtype_of(ELEMENT_TYPES[element]))


def run_single(
    instruction: str, element: str, *operands: Sequence[object], result: str | None = None
) -> Value:
    """What `opcode, attribute=…` makes of arrays of one dimension and one element type."""
    opcode, comma, attributes = instruction.partition(",")
    arrays = [array_of(element, operand) for operand in operands]
    shapes = [f"{element}[{len(array)}]" for array in arrays]
    parameters = "\n".join(
        f"  p{number} = {shape} parameter({number})" for number, shape in enumerate(shapes)
    )
    names = ", ".join(f"p{number}" for number in range(len(arrays)))
    shape = result if result and "[" in result else f"{result or element}[{len(arrays[0])}]"
    root = f"  ROOT r = {shape} {opcode}({names}){comma}{attributes}"
    return run(f"HloModule m\nENTRY e {{\n{parameters}\n{root}\n}}\n", *arrays)
