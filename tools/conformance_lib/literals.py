"""Values of constants, and of computations without parameters, as nested lists."""

from __future__ import annotations

import math
import re
from typing import TypeAlias

from conformance_lib.errors import RecordError
from hloopt.ir import Computation, Instruction, Opcode

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
    if isinstance(found, bool) and type(wanted) is int:
        return wanted in (0, 1) and found == wanted  # tables write truth values as numbers, too
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
    """The value of a computation without parameters.

    Raises RecordError for parameters and for a value that is not an array.
    """
    from hloopt.interpreter.evaluation import evaluate_alone
    from hloopt.interpreter.plan import Plans
    from hloopt.interpreter.values import widened

    if computation.parameters:
        raise RecordError(f"%{computation.name} has parameters: it has no value of its own")
    if not computation.root.shape.is_array:
        raise RecordError(f"%{computation.root.name} is not an array")
    value: Value = widened(evaluate_alone(computation, [], Plans())).tolist()
    return value
