"""Opcodes that compute each element from the elements at its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hloopt.interpreter.arithmetic import complex_math, float_math, integer_math
from hloopt.interpreter.arithmetic.float_math import rounded_once
from hloopt.interpreter.arithmetic.ordering import total_order_key
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.values import Array, computing_type, dtype_of_shape, widened
from hloopt.ir.attributes.explicit import is_total_order
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


def _bits_of(instruction: Instruction) -> int:
    element = instruction.operands[0].shape.element_type
    assert element is not None
    return element.bits


_Function = Callable[..., Any]
_KINDS: dict[Opcode, Mapping[str, _Function]] = {
    Opcode.ABS: {"iufc": np.abs},
    Opcode.ACOS: {"f": rounded_once(np.arccos), "c": np.arccos},
    Opcode.ACOSH: {"f": rounded_once(np.arccosh), "c": np.arccosh},
    Opcode.ADD: {"b": np.logical_or, "iufc": np.add},
    Opcode.AND: {"biu": np.bitwise_and},
    Opcode.ASIN: {"f": rounded_once(np.arcsin), "c": np.arcsin},
    Opcode.ASINH: {"f": rounded_once(np.arcsinh), "c": np.arcsinh},
    Opcode.ATAN2: {"f": rounded_once(np.arctan2), "c": complex_math.atan2},
    Opcode.ATANH: {"f": rounded_once(np.arctanh), "c": np.arctanh},
    Opcode.CBRT: {"f": rounded_once(np.cbrt)},
    Opcode.CEIL: {"f": np.ceil},
    Opcode.COSH: {"f": rounded_once(np.cosh), "c": np.cosh},
    Opcode.COSINE: {"f": rounded_once(np.cos), "c": np.cos},
    Opcode.DIVIDE: {"iu": integer_math.divide, "f": np.divide, "c": complex_math.divide},
    Opcode.ERF: {"f": float_math.erf},
    Opcode.EXPONENTIAL: {"f": float_math.exp, "c": np.exp},
    Opcode.EXPONENTIAL_MINUS_ONE: {"f": rounded_once(np.expm1), "c": complex_math.expm1},
    Opcode.FLOOR: {"f": np.floor},
    Opcode.IMAG: {"f": np.zeros_like, "c": np.imag},
    Opcode.IS_FINITE: {"f": np.isfinite},
    Opcode.LOG: {"f": rounded_once(np.log), "c": np.log},
    Opcode.LOG_PLUS_ONE: {"f": rounded_once(np.log1p), "c": complex_math.log1p},
    Opcode.LOGISTIC: {"f": float_math.logistic, "c": complex_math.logistic},
    Opcode.MAXIMUM: {"b": np.logical_or, "iuf": np.maximum, "c": complex_math.maximum},
    Opcode.MINIMUM: {"b": np.logical_and, "iuf": np.minimum, "c": complex_math.minimum},
    Opcode.MULTIPLY: {"b": np.logical_and, "iufc": np.multiply},
    Opcode.NEGATE: {"iufc": np.negative},
    Opcode.NOT: {"b": np.logical_not, "iu": np.invert},
    Opcode.OR: {"biu": np.bitwise_or},
    Opcode.POWER: {"iu": integer_math.power, "f": rounded_once(np.power), "c": complex_math.power},
    Opcode.REAL: {"f": np.asarray, "c": np.real},
    Opcode.REMAINDER: {"iu": integer_math.remainder, "f": np.fmod},
    Opcode.ROUND_NEAREST_AFZ: {"f": float_math.round_half_away_from_zero},
    Opcode.ROUND_NEAREST_EVEN: {"f": np.rint},
    Opcode.RSQRT: {"f": float_math.rsqrt, "c": complex_math.rsqrt},
    Opcode.SIGN: {"iu": np.sign, "f": float_math.sign, "c": complex_math.sign},
    Opcode.SINE: {"f": rounded_once(np.sin), "c": np.sin},
    Opcode.SINH: {"f": rounded_once(np.sinh), "c": np.sinh},
    Opcode.SQRT: {"fc": np.sqrt},
    Opcode.SUBTRACT: {"iufc": np.subtract},
    Opcode.TAN: {"f": rounded_once(np.tan), "c": np.tan},
    Opcode.TANH: {"f": rounded_once(np.tanh), "c": np.tanh},
    Opcode.XOR: {"biu": np.bitwise_xor},
}
"""The functions of opcodes, by the kinds of NumPy (b: pred, i and u: integers, f and c) they take.
The functions get values in their computing type."""

_ON_BITS: dict[Opcode, _Function] = {
    Opcode.COUNT_LEADING_ZEROS: integer_math.count_leading_zeros,
    Opcode.MULHI: integer_math.multiply_high,
    Opcode.POPCNT: integer_math.count_ones,
    Opcode.SHIFT_LEFT: integer_math.shift_left,
    Opcode.SHIFT_RIGHT_ARITHMETIC: integer_math.shift_right_arithmetic,
    Opcode.SHIFT_RIGHT_LOGICAL: integer_math.shift_right_logical,
}
"""Functions of integers that take the width of the type first."""


@kernel(*_KINDS)
def compute(instruction: Instruction, *operands: Array) -> Array:
    operands = tuple(map(widened, operands))
    kind = operands[0].dtype.kind
    for kinds, function in _KINDS[instruction.opcode].items():
        if kind in kinds:
            return _narrowed(function(*operands), instruction)
    raise _no_operation(instruction)


@kernel(*_ON_BITS)
def compute_on_bits(instruction: Instruction, *operands: Array) -> Array:
    if computing_type(operands[0].dtype).kind not in "iu":
        raise _no_operation(instruction)
    function = _ON_BITS[instruction.opcode]
    return _narrowed(function(_bits_of(instruction), *map(widened, operands)), instruction)


def _no_operation(instruction: Instruction) -> RunError:
    operand = instruction.operands[0].shape.type_name
    return RunError(f"{instruction.opcode} does not take values of type {operand}", code="HLO501")


def _narrowed(result: Any, instruction: Instruction) -> Array:
    """A result in its own type; integers wrap around."""
    return np.asarray(result).astype(dtype_of_shape(instruction.shape), copy=False)


_DIRECTIONS: dict[str, _Function] = {
    **{"EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater},
    **{"LE": np.less_equal, "LT": np.less},
}


@kernel(Opcode.COMPARE)
def compare(instruction: Instruction, left: Array, right: Array) -> Array:
    attributes = instruction.attributes
    of = total_order_key if is_total_order(instruction) else widened
    return np.asarray(_DIRECTIONS[attributes["direction"]](of(left), of(right)))


@kernel(Opcode.SELECT)
def select(instruction: Instruction, condition: Array, on_true: Array, on_false: Array) -> Array:
    if not condition.ndim:
        return on_true if condition else on_false
    return np.where(condition, on_true, on_false)


@kernel(Opcode.CLAMP)
def clamp(instruction: Instruction, low: Array, operand: Array, high: Array) -> Array:
    low, operand, high = map(widened, (low, operand, high))
    return _narrowed(np.minimum(np.maximum(operand, low), high), instruction)


@kernel(Opcode.COMPLEX)
def complex_of_parts(instruction: Instruction, real: Array, imaginary: Array) -> Array:
    return complex_math.make_complex(real, imaginary)
