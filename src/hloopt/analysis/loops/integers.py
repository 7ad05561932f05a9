"""Integers of HLO as Python's own: what loops and devices count needs no NumPy to be computed.

Importing that takes longer than most passes run. What is not here the interpreter computes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.plain_literals import is_plain, plain_values
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape

_MOST_ELEMENTS = 64
"""Larger arrays NumPy computes faster, its import included where many devices do so."""

Integers: TypeAlias = tuple[int, ...]
"""The elements of an array of integers or truth values, row by row; of a scalar the only one."""


def is_integer(value: Instruction) -> bool:
    """Whether a value is a scalar integer."""
    element = value.shape.element_type
    return value.shape.is_scalar and element is not None and element.is_integral


def has_integers(shape: Shape) -> bool:
    """Whether this is an array of integers, or of truth values, which are 0 and 1."""
    element = shape.element_type
    return element is not None and (element.is_integral or element.kind == "pred")


def wrap(number: int, like: Instruction, *, signed: bool | None = None) -> int:
    """`number` as the integer type of `like` holds it; `signed` overrides what that says."""
    element = like.shape.element_type
    assert element is not None
    size = 1 << element.bits
    number %= size
    is_signed = element.kind == "signed" if signed is None else signed
    return number - size if is_signed and number >= size // 2 else number


def holds(value: int, direction: str, limit: int) -> bool:
    """Whether `value DIRECTION limit`."""
    return _COMPARISONS[direction](value, limit)


def computed(operation: Instruction, operands: Sequence[Integers]) -> Integers | None:
    """The result of an operation. O(its elements, or those of a literal).

    None where it takes the interpreter: other types, opcodes, and ranks than indices and counters
    are computed with, divisions of negative numbers or by zero, and arithmetic on whole tables.
    """
    if not has_integers(operation.shape):
        return None
    match operation.opcode:
        case Opcode.CONSTANT:
            return _literal(operation.payload, operation.shape)
        case Opcode.RESHAPE:
            return operands[0]
        case Opcode.BROADCAST if len(operands[0]) == 1:
            return operands[0] * operation.shape.element_count()
        case Opcode.DYNAMIC_SLICE if operation.shape.rank == 1:
            array, (start,) = operands
            (size,) = operation.shape.dimensions
            first = min(max(start, 0), len(array) - size)
            return array[first : first + size]
        case _ if operation.shape.element_count() > _MOST_ELEMENTS:
            return None
        case Opcode.COMPARE:
            compare = _COMPARISONS[direction_of(operation)]
            return tuple(int(compare(a, b)) for a, b in zip(*operands, strict=True))
        case opcode:
            is_logic = operation.shape.type_name == "pred"
            function = (_ON_TRUTH_VALUES if is_logic else _ON_INTEGERS).get(opcode)
            if function is None:
                return None
            count = operation.shape.element_count()
            rows = zip(*(o * count if len(o) == 1 else o for o in operands), strict=True)
            try:
                return tuple(wrap(function(*row), operation) for row in rows)
            except _NotPlain:
                return None


class _NotPlain(Exception):
    """The interpreter knows what comes of this."""


def _divided(divide: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def divided(a: int, b: int) -> int:
        if a < 0 or b <= 0:
            raise _NotPlain
        return divide(a, b)

    return divided


def _select(predicate: int, on_true: int, on_false: int) -> int:
    return on_true if predicate else on_false


def _clamp(least: int, value: int, most: int) -> int:
    return min(max(least, value), most)


_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    **{"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge},
    **{"EQ": operator.eq, "NE": operator.ne},
}
_ON_TRUTH_VALUES: Mapping[Opcode, Callable[..., int]] = {
    Opcode.AND: operator.and_,
    Opcode.OR: operator.or_,
    Opcode.XOR: operator.xor,
    Opcode.SELECT: _select,
}
_ON_INTEGERS: Mapping[Opcode, Callable[..., int]] = {
    **_ON_TRUTH_VALUES,
    Opcode.CONVERT: int,
    Opcode.NEGATE: operator.neg,
    Opcode.ADD: operator.add,
    Opcode.SUBTRACT: operator.sub,
    Opcode.MULTIPLY: operator.mul,
    Opcode.DIVIDE: _divided(operator.floordiv),
    Opcode.REMAINDER: _divided(operator.mod),
    Opcode.MAXIMUM: max,
    Opcode.MINIMUM: min,
    Opcode.CLAMP: _clamp,
}


def _literal(text: str, shape: Shape) -> Integers | None:
    """The elements of a literal as XLA prints it; None where it is spelled in another way."""
    if shape.is_scalar:
        numbers = [text.strip()]
    else:
        numbers = list(plain_values(text)) if is_plain(text, shape) else []
    found = tuple(n for n in map(_number, numbers) if n is not None)
    return found if found and len(found) == len(numbers) else None


def _number(text: str) -> int | None:
    if text.removeprefix("-").isdecimal():
        return int(text)
    return _TRUTH_VALUES.get(text)


_TRUTH_VALUES = {"true": 1, "false": 0}
