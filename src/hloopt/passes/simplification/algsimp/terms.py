"""Facts about values that conditions of rules ask for: signs, powers of two, kinds of types."""

from __future__ import annotations

import math

from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.passes.rewriting.rules.constants import Scalar, scalar_of, splat_value
from hloopt.passes.simplification.algsimp.options import AlgsimpOptions

_DEEPEST = 32
_EXPONENTS = {"f64": 1022, "f32": 126, "bf16": 126, "f16": 14}
"""The largest and, negated, the smallest exponent of normal numbers; 6 for 8 bits at least."""
_ELEMENTWISE = (
    ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.SELECT, Opcode.CLAMP, Opcode.MAP}
) - {Opcode.STOCHASTIC_CONVERT}


def kind_of(instruction: Instruction) -> str:
    """The kind of the element type: `pred`, `signed`, `unsigned`, `float`, `complex`; else ""."""
    kind = instruction.shape.element_type
    return "" if kind is None else kind.kind


def is_integer(instruction: Instruction) -> bool:
    return kind_of(instruction) in ("signed", "unsigned")


def is_float(instruction: Instruction) -> bool:
    return kind_of(instruction) == "float"


def is_pred(instruction: Instruction) -> bool:
    return kind_of(instruction) == "pred"


def is_elementwise(instruction: Instruction) -> bool:
    """Whether each element of the result depends on the same element of each operand alone."""
    return instruction.opcode in _ELEMENTWISE and all(
        operand.shape.dimensions == instruction.shape.dimensions for operand in instruction.operands
    )


def shared_scalar(instruction: Instruction) -> Scalar | None:
    """The value of a constant of one element, or of a broadcast of one."""
    if instruction.opcode is Opcode.BROADCAST:
        (instruction,) = instruction.operands
    return scalar_of(instruction)


def power_of_two(instruction: Instruction) -> int | None:
    """The exponent k where a constant of one element, or a broadcast of one, is ±2^k."""
    found = shared_scalar(instruction)
    if found is None or isinstance(found, bool | complex) or not found or not math.isfinite(found):
        return None
    if isinstance(found, int):
        size = abs(found)
        return size.bit_length() - 1 if size & (size - 1) == 0 else None
    mantissa, exponent = math.frexp(abs(found))
    return exponent - 1 if mantissa == 0.5 else None


def out_of_range(opcode: str, c: Instruction, d: Instruction) -> str:
    """The reason why the sum or product of two constants is no normal number; "" if it is one.

    Then A·C1·C2 may be an ordinary number where A·(C1·C2) overflows or loses bits. Constants of
    several values are not looked at.
    """
    a, b = splat_value(c), splat_value(d)
    if not isinstance(a, float) or not isinstance(b, float):
        return ""
    result = a + b if opcode == "add" else a * b
    exponent = _EXPONENTS.get(c.shape.type_name, 6)
    is_normal = 2.0**-exponent <= abs(result) < 2.0 ** min(exponent + 1, 1023)
    if is_normal or not (a and b and math.isfinite(a) and math.isfinite(b)):
        return ""
    return (
        "" if opcode == "add" and not result else f"{a:g} and {b:g} give {result:g}: out of range"
    )


def is_constant(instruction: Instruction) -> bool:
    """Whether it is a constant, or a broadcast of one."""
    if instruction.opcode is Opcode.BROADCAST:
        (instruction,) = instruction.operands
    return instruction.opcode is Opcode.CONSTANT


def is_scalar_constant(instruction: Instruction) -> bool:
    """Whether it is a rank-0 constant, or a broadcast of one."""
    if instruction.opcode is Opcode.BROADCAST:
        (instruction,) = instruction.operands
    return instruction.opcode is Opcode.CONSTANT and instruction.shape.is_scalar


def only_user(instruction: Instruction) -> Instruction | None:
    """The user of an instruction that has exactly one."""
    if len(instruction.users) != 1:
        return None
    (user,) = instruction.users
    return user


def is_non_negative(
    x: Instruction, options: AlgsimpOptions | None = None, depth: int = _DEEPEST
) -> bool:
    """Whether no element is negative, NaN aside. False where that is not known.

    Squares, powers and absolute values of signed integers may overflow.
    """
    if not depth or any(kind_of(operand) == "complex" for operand in (x, *x.operands)):
        return False
    match x.opcode:
        case Opcode.MULTIPLY:
            return x.operands[0] is x.operands[1] and kind_of(x) != "signed"
        case Opcode.EXPONENTIAL:
            return True
        case Opcode.IOTA:
            return _counts_in_range(x)
        case Opcode.ABS:
            return kind_of(x) != "signed" or is_non_negative(x.operands[0], options, depth - 1)
        case Opcode.BROADCAST:
            return is_non_negative(x.operands[0], options, depth - 1)
        case Opcode.CONSTANT:
            found = scalar_of(x)
            return found is not None and _has_no_sign(found)
        case Opcode.MAXIMUM:
            return any(is_non_negative(o, options, depth - 1) for o in x.operands)
        case Opcode.MINIMUM:
            return all(is_non_negative(o, options, depth - 1) for o in x.operands)
        case Opcode.SELECT:
            return all(is_non_negative(o, options, depth - 1) for o in x.operands[1:])
        case Opcode.POWER:
            return kind_of(x) != "signed" and is_non_negative(x.operands[0], options, depth - 1)
    return is_positive(x, options, depth)


def is_positive(
    x: Instruction, options: AlgsimpOptions | None = None, depth: int = _DEEPEST
) -> bool:
    """Whether all elements are larger than 0, NaN and what underflows aside."""
    if not depth or kind_of(x) == "complex":
        return False
    match x.opcode:
        case Opcode.GET_TUPLE_ELEMENT:
            target = options.cudnn_batchnorm_forward_training_metadata if options else ""
            (made,) = x.operands
            return bool(target) and x.tuple_index == 2 and custom_call_target(made) == target
        case Opcode.POWER:
            return kind_of(x) != "signed" and is_positive(x.operands[0], options, depth - 1)
        case Opcode.MULTIPLY:
            is_square = x.operands[0] is x.operands[1] and kind_of(x) != "signed"
            return is_square and is_positive(x.operands[0], options, depth - 1)
        case Opcode.ABS | Opcode.RSQRT | Opcode.SQRT:
            return is_positive(x.operands[0], options, depth - 1)
    return False


def _counts_in_range(iota: Instruction) -> bool:
    kind = iota.shape.element_type
    if kind is None or kind.kind != "signed" or kind.bits == 64:
        return True
    dimension = int(iota.attributes["iota_dimension"])
    return iota.shape.dimensions[dimension] <= 1 << (kind.bits - 1)


def _has_no_sign(found: Scalar) -> bool:
    if isinstance(found, complex) or found != found:
        return False
    return math.copysign(1.0, found) > 0 if isinstance(found, float) else found >= 0


def all_zero(instruction: Instruction) -> bool:
    return splat_value(instruction) == 0


def is_minus_zero(instruction: Instruction) -> bool:
    found = splat_value(instruction)
    return isinstance(found, float) and found == 0 and math.copysign(1.0, found) < 0
