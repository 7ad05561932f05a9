"""Custom calls that XLA's SPMD partitioner defines for itself: rotations, slices, wrapping.

Their sizes stand in the backend config: `dimension=0,left_amount=1,right_amount=1`.
"""

from __future__ import annotations

import numpy as np

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.values import Array, Value
from hloopt.ir.attributes.values import parse_string
from hloopt.ir.instruction import Instruction
from hloopt.patterns import pattern

_PREFIX = "_SPMDInternalOp_"
ROTATE_RIGHT, MULTI_ROTATE, MULTI_SLICE, WRAP = (
    _PREFIX + name for name in ("RotateRight", "MultiRotate", "MultiSlice", "Wrap")
)
_FIELD = pattern(r"(\w+)=(?:\[([\d,]*)\]|(-?\d+))")


def rotate_right(call: Instruction, operand: Array) -> Value:
    """The operand, elements moved to larger indices; those over the end come first."""
    amount, axis = _numbers(call, "amount", "dimension")
    return np.roll(operand, amount, axis)


def multi_rotate(call: Instruction, operand: Array) -> Value:
    """The operand rotated by `left_amount` to smaller indices, by one less, …, and at last by
    `right_amount` to larger ones."""
    left, right, axis = _numbers(call, "left_amount", "right_amount", "dimension")
    return tuple(np.roll(operand, amount, axis) for amount in range(-left, right + 1))


def multi_slice(call: Instruction, operand: Array) -> Value:
    """`amount` + 1 slices, each one element further along the dimension than the one before."""
    amount, axis = _numbers(call, "amount", "dimension")
    starts, limits, strides = (
        _lists(call, name) for name in ("start_indices", "limit_indices", "strides")
    )
    found = []
    for shift in range(amount + 1):
        moved = [shift * (number == axis) for number in range(operand.ndim)]
        bounds = zip(starts, limits, strides, moved, strict=True)
        found.append(operand[tuple(slice(a + m, b + m, s) for a, b, s, m in bounds)])
    return tuple(found)


def wrap(call: Instruction, operand: Array) -> Value:
    """The operand between its last `left_amount` and its first `right_amount` elements."""
    left, right, axis = _numbers(call, "left_amount", "right_amount", "dimension")
    size = operand.shape[axis]
    return np.take(operand, np.arange(-left, size + right), axis, mode="wrap")


def _numbers(call: Instruction, *names: str) -> list[int]:
    """Fields of the backend config. Raises RunError for one that is missing."""
    fields = {name: number for name, _, number in _fields(call)}
    if missing := next((name for name in names if not fields.get(name)), None):
        raise _incomplete(missing)
    return [int(fields[name]) for name in names]


def _lists(call: Instruction, name: str) -> list[int]:
    for field, numbers, number in _fields(call):
        if field == name and not number:
            return [int(part) for part in numbers.split(",") if part]
    raise _incomplete(name)


def _fields(call: Instruction) -> list[tuple[str, str, str]]:
    text = call.attributes.get("backend_config", "")
    return _FIELD.findall(parse_string(text) if text.startswith('"') else text)


def _incomplete(name: str) -> RunError:
    return RunError(f"its backend config has no '{name}'", code="HLO501")
