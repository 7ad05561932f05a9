"""Values as values of other types: by value, by their bits, or with fewer bits of their own."""

from __future__ import annotations

import numpy as np

from hloopt.interpreter.arithmetic.conversions import converted, same_bits, saturated
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.values import Array, computing_type, dtype_of_shape, float_info, widened
from hloopt.ir.attributes.values import parse_int
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


@kernel(Opcode.CONVERT)
def convert(instruction: Instruction, operand: Array) -> Array:
    """Integers wrap around, floats turned into integers are cut off and saturate, NaN is 0.

    Complex numbers lose their imaginary part in any other type.
    """
    return converted(operand, dtype_of_shape(instruction.shape))


@kernel(Opcode.STOCHASTIC_CONVERT)
def stochastic_convert(instruction: Instruction, operand: Array, random: Array) -> Array:
    """Away from zero with the probability of the fraction: where it exceeds the random bits."""
    dtype = dtype_of_shape(instruction.shape)
    if computing_type(dtype).kind != "i":
        raise RunError("the result has to be of a signed integer type, as in XLA", code="HLO501")
    values = widened(operand)
    whole = np.trunc(values)
    share = np.ldexp(np.abs(values - whole).astype(np.float64), random.dtype.itemsize * 8)
    away = np.copysign((share > random).astype(values.dtype), values)
    return saturated(np.where(np.isfinite(values), whole + away, values), dtype)


@kernel(Opcode.REDUCE_PRECISION)
def reduce_precision(instruction: Instruction, operand: Array) -> Array:
    """Each value rounded to the nearest of a float type with fewer bits, which has infinities but
    no subnormal numbers; ties to even."""
    exponent_bits = parse_int(instruction.attributes["exponent_bits"])
    mantissa_bits = parse_int(instruction.attributes["mantissa_bits"])
    own = float_info(operand.dtype)
    if exponent_bits >= own.nexp and mantissa_bits >= own.nmant:
        return operand
    values = widened(operand)
    kept = min(mantissa_bits, own.nmant)
    # Bits of the wide type: those of `values`, which holds the operand's exactly.
    wide = np.finfo(values.dtype)
    bits = values.view(f"uint{wide.bits}")
    sign, size = bits & _power(wide.bits - 1, bits), bits & (_power(wide.bits - 1, bits) - 1)
    dropped = int(wide.nmant) - kept
    if dropped:
        odd = (size >> np.array(dropped, bits.dtype)) & 1
        size = size + (_power(dropped - 1, bits) - 1) + odd
        size = size & ~(_power(dropped, bits) - 1)
    if exponent_bits < own.nexp:
        bias, new_bias = (1 << (int(wide.nexp) - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = size >> np.array(int(wide.nmant), bits.dtype)
        infinite = np.array(np.inf, values.dtype).view(bits.dtype)
        size = np.where(exponent > bias + new_bias, infinite, size)
        size = np.where(exponent <= bias - new_bias, np.zeros((), bits.dtype), size)
    rounded = (sign | size).view(values.dtype)
    return np.where(np.isnan(values), values, rounded).astype(operand.dtype)


def _power(exponent: int, like: Array) -> Array:
    return np.array(1 << exponent, like.dtype)


@kernel(Opcode.BITCAST_CONVERT)
def bitcast_convert(instruction: Instruction, operand: Array) -> Array:
    """The bits of each element as those of an element of another type.

    Wider elements become a last dimension of narrower ones, the lowest bits first, and back.
    """
    old = instruction.operands[0].shape.element_type
    new = instruction.shape.element_type
    assert old is not None
    assert new is not None
    return same_bits(operand, old, new)
