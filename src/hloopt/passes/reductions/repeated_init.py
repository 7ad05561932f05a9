"""Whether the initial value of a reduction may be combined with its elements several times."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import Scalar, converted, splat_value
from hloopt.passes.simplification.algsimp.reductions.reducers import neutral_of

_IDEMPOTENT = frozenset((Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR))


def may_be_repeated(reducer: Computation, init: Instruction) -> bool:
    """Whether the reducer is idempotent, or ignores `init`. O(steps to the operation).

    Converts of the operation's result count for nothing: they only round it.
    """
    operation = combining(reducer)
    if operation is None:
        return False
    if operation.opcode in _IDEMPOTENT:
        return True
    neutral = neutral_of(operation.opcode, init)
    found = _value(init)
    return found is not None and found == neutral


def combining(reducer: Computation) -> Instruction | None:
    """The operation on the two parameters whose result, perhaps rounded, a reducer gives."""
    operation = reducer.root
    while operation.opcode is Opcode.CONVERT:
        operation = operation.operands[0]
    parameters = reducer.parameters
    if len(parameters) != 2 or len(operation.operands) != 2:
        return None
    return operation if set(map(_source, operation.operands)) == set(parameters) else None


def _source(value: Instruction) -> Instruction:
    while value.opcode is Opcode.CONVERT:
        value = value.operands[0]
    return value


def _value(init: Instruction) -> Scalar | None:
    """The value of a constant, perhaps converted or broadcast."""
    if init.opcode is Opcode.CONVERT:
        value = _value(init.operands[0])
        return None if value is None else converted(value, init.shape)
    return splat_value(init)
