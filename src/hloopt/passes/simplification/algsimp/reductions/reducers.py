"""Computations that reduce two values to one: their operation, what they ignore, argmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import Scalar, integer_range, splat_value

_IDEMPOTENT = (Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR)


def operation_of(computation: Computation) -> Opcode | None:
    """The opcode of a computation that is one operation on its two parameters."""
    root = computation.root
    if len(root.operands) != 2 or root.operands[0] is root.operands[1]:
        return None
    if any(o.opcode is not Opcode.PARAMETER for o in root.operands):
        return None
    return root.opcode if len(computation.parameters) == 2 else None


def neutral_of(opcode: Opcode, like: Instruction) -> Scalar | None:
    """The value that an operation ignores, for the element type of `like`."""
    kind = like.shape.element_type
    if kind is None:
        return None
    is_pred = kind.kind == "pred"
    match opcode:
        case Opcode.ADD:
            return 0
        case Opcode.MULTIPLY:
            return 1
        case Opcode.AND:
            return True if is_pred else integer_range(kind)[1] if kind.kind == "unsigned" else -1
        case Opcode.OR | Opcode.XOR:
            return 0
        case Opcode.MAXIMUM if kind.kind != "complex":
            return False if is_pred else (integer_range(kind)[0] if kind.is_integral else -math.inf)
        case Opcode.MINIMUM if kind.kind != "complex":
            return True if is_pred else (integer_range(kind)[1] if kind.is_integral else math.inf)
    return None


def is_neutral(computation: Computation, init: Instruction) -> bool:
    """Whether a reducer ignores its initial value, so that it may be applied more or less often."""
    opcode = operation_of(computation)
    if opcode is None:
        return False
    found, neutral = splat_value(init), neutral_of(opcode, init)
    return found is not None and found == neutral


def are_neutral(computation: Computation, inits: Sequence[Instruction]) -> bool:
    """Whether a reducer of one or more values, each with an operation of its own, ignores them."""
    if len(inits) == 1:
        return is_neutral(computation, inits[0])
    parameters, root = computation.parameters, computation.root
    count = len(inits)
    if root.opcode is not Opcode.TUPLE or len(parameters) != 2 * count:
        return False
    for number, (step, init) in enumerate(zip(root.operands, inits, strict=True)):
        pair = [parameters[number], parameters[number + count]]
        if len(step.operands) != 2 or set(step.operands) != set(pair):
            return False
        found, neutral = splat_value(init), neutral_of(step.opcode, init)
        if found is None or found != neutral:
            return False
    return True


def may_repeat(computation: Computation, init: Instruction) -> bool:
    """Whether the initial value may be applied several times instead of once."""
    return operation_of(computation) in _IDEMPOTENT or is_neutral(computation, init)


def argument_of_extreme(computation: Computation) -> Opcode | None:
    """MAXIMUM for a reducer of (value, index) pairs that takes the first largest value, NaN before
    all others; MINIMUM for the smallest; None for another computation."""
    root = computation.root
    if root.opcode is not Opcode.TUPLE or len(root.operands) != 2:
        return None
    parameters = computation.parameters
    if len(parameters) != 4:
        return None
    value, index = root.operands
    if value.opcode is not Opcode.SELECT or index.opcode is not Opcode.SELECT:
        return None
    x, i, y, j = parameters
    first, *values = value.operands
    later, *indices = index.operands
    if values != [x, y] or indices != [i, j]:
        return None
    kind = _is_better(first, x, y)
    return kind if kind is not None and _breaks_ties(later, first, (x, i, y, j)) else None


def _is_better(first: Instruction, x: Instruction, y: Instruction) -> Opcode | None:
    """For `x > y or x ≠ x`: MAXIMUM; integers go without the second part."""
    compare = first
    if first.opcode is Opcode.OR:
        compare, is_nan = first.operands
        if is_nan.opcode is not Opcode.COMPARE or is_nan.operands != [x, x]:
            return None
        if direction_of(is_nan) != "NE":
            return None
    elif x.shape.element_type is None or not x.shape.element_type.is_integral:
        return None
    if compare.opcode is not Opcode.COMPARE or compare.operands != [x, y]:
        return None
    return {"GT": Opcode.MAXIMUM, "LT": Opcode.MINIMUM}.get(direction_of(compare))


def _breaks_ties(
    later: Instruction, first: Instruction, parameters: tuple[Instruction, ...]
) -> bool:
    """For `first or (x = y and i < j)`."""
    x, i, y, j = parameters
    if later.opcode is not Opcode.OR or later.operands[0] is not first:
        return False
    tie = later.operands[1]
    if tie.opcode is not Opcode.AND:
        return False
    equal, before = tie.operands
    return (
        equal.opcode is before.opcode is Opcode.COMPARE
        and equal.operands == [x, y]
        and direction_of(equal) == "EQ"
        and before.operands == [i, j]
        and direction_of(before) == "LT"
    )
