"""Values of constants as nested lists, and the value of modules of constants and adds."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TypeAlias

from conformance_lib.errors import RecordError
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.ordering import post_order

Value: TypeAlias = "bool | int | float | list[Value]"

_TOKEN = re.compile(r"/\*.*?\*/|([{},])|([^\s{},]+)|\s+", re.S)


def constant_value(constant: Instruction) -> Value:
    """The literal of a constant: a number or bool, or nested lists of them.

    Raises RecordError for literals of tuples and elided ones.
    """
    if constant.opcode is not Opcode.CONSTANT:
        raise RecordError(f"%{constant.name} is no constant but {constant.opcode}")
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


def _scalar(token: str) -> Value:
    if token in ("true", "false"):
        return token == "true"
    try:
        return int(token) if re.fullmatch(r"-?\d+", token) else float(token)
    except ValueError:
        raise RecordError(f"'{token}' is not a number") from None


def evaluate(computation: Computation) -> Value:
    """The value of a computation without parameters, of the opcodes constant and add only.

    Raises RecordError for other opcodes.
    """
    values: dict[Instruction, Value] = {}
    for instruction in post_order(computation):
        if instruction.opcode is Opcode.CONSTANT:
            values[instruction] = constant_value(instruction)
        elif instruction.opcode is Opcode.ADD:
            left, right = (values[operand] for operand in instruction.operands)
            values[instruction] = _add(left, right, _rounding(instruction))
        else:
            raise RecordError(f"evaluating {instruction.opcode} is not supported")
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
