"""Values of constants as nested lists, and the value of modules of constants and adds."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import TypeAlias

from conformance_lib.errors import NotModelled, RecordError
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.ordering import post_order

Value: TypeAlias = "bool | int | float | list[Value]"

_TOKEN = re.compile(r"/\*.*?\*/|([{},])|([^\s{},]+)|\s+", re.S)


def constant_value(constant: Instruction) -> Value:
    """The literal of a constant: a number or bool, or nested lists of them.

    Raises RecordError for literals of tuples and elided ones.
    """
    if constant.opcode is not Opcode.CONSTANT:
        raise RecordError(f"%{constant.name} is not a constant but {constant.opcode}")
    opened: list[list[Value]] = [[]]
    for match in _TOKEN.finditer(constant.payload):
        if match[1] == "{":
            inner: list[Value] = []
            opened[-1].append(inner)
            opened.append(inner)
        elif match[1] == "}":
            opened.pop()
        elif match[2]:
            opened[-1].append(_scalar(match[2]))
    if len(opened) != 1 or len(opened[0]) != 1:
        raise RecordError(f"the literal of %{constant.name} is not a scalar or an array")
    return opened[0][0]


def elements(value: Value) -> list[bool | int | float]:
    """The numbers in a literal, in order."""
    if not isinstance(value, list):
        return [value]
    return [number for part in value for number in elements(part)]


NUMBER_TEXTS = ("inf", "-inf", "nan")
"""Numbers that JSON cannot write."""
_NARROW = ("bf16", "f16")


def values_agree(instruction: Instruction, found: Value, expected: object) -> bool:
    """Whether a literal is as a table says: "inf", "-inf" and "nan" are numbers; floats may be off
    by 1e-6 of their value, those of bf16 and f16 by 1e-2."""
    if isinstance(expected, list) or isinstance(found, list):
        if not isinstance(expected, list) or not isinstance(found, list):
            return False
        pairs = zip(found, expected, strict=False)
        return len(found) == len(expected) and all(
            values_agree(instruction, a, b) for a, b in pairs
        )
    wanted = float(expected) if isinstance(expected, str) and expected in NUMBER_TEXTS else expected
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if not isinstance(wanted, int | float):
        raise RecordError(f"{expected!r} is not a number")
    if isinstance(found, float) or isinstance(wanted, float):
        relative = 1e-2 if instruction.shape.type_name in _NARROW else 1e-6
        both_nan = math.isnan(found) and math.isnan(wanted)
        return both_nan or math.isclose(found, wanted, rel_tol=relative)
    return found == wanted


def _scalar(token: str) -> Value:
    if token in ("true", "false"):
        return token == "true"
    try:
        return int(token) if re.fullmatch(r"-?\d+", token) else float(token)
    except ValueError:
        raise RecordError(f"'{token}' is not a number") from None


def evaluate(computation: Computation) -> Value:
    """The value of a computation without parameters, of the opcodes constant and add only.

    Raises NotModelled for other opcodes, RecordError for parameters.
    """
    values: dict[Instruction, Value] = {}
    for instruction in post_order(computation):
        if instruction.opcode is Opcode.CONSTANT:
            values[instruction] = constant_value(instruction)
        elif instruction.opcode is Opcode.ADD:
            left, right = (values[operand] for operand in instruction.operands)
            values[instruction] = _add(left, right, _rounding(instruction))
        elif instruction.opcode is Opcode.PARAMETER:
            raise RecordError(f"%{computation.name} has parameters: it has no value of its own")
        else:
            raise NotModelled(f"evaluating {instruction.opcode} is not supported")
    return values[computation.root]


def _rounding(instruction: Instruction) -> Callable[[float], float]:
    name = instruction.shape.type_name
    if name == "f64":
        return float
    if name == "f32":
        return lambda value: float(struct.unpack("<f", struct.pack("<f", value))[0])
    raise RecordError(f"evaluating {instruction.opcode} of {name} is not supported")


def _add(left: Value, right: Value, rounded: Callable[[float], float]) -> Value:
    if isinstance(left, list) and isinstance(right, list):
        return [_add(a, b, rounded) for a, b in zip(left, right, strict=True)]
    if isinstance(left, list) or isinstance(right, list):
        raise RecordError("add of an array and a scalar")
    return rounded(left + right)
