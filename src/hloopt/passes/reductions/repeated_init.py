"""Whether the initial value of a reduction may be combined with its elements several times."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import Scalar, converted, splat_value
from hloopt.passes.simplification.algsimp.reductions.reducers import neutral_of

_IDEMPOTENT = frozenset((Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR))


def may_be_repeated(reducer: Computation, init: Instruction) -> bool:
    """Whether the reducer is one operation that is idempotent, or ignores `init`.

    All of them are commutative. Converts of the operation's result count for nothing: they only
    round it. O(steps to the operation).
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
    """The operation on the two parameters whose result, perhaps rounded, a reducer gives.

    It may stand in a computation that the reducer calls with its parameters, as one result of it;
    of several results it is the last one.
    """
    value, parameters = _source(reducer.root), reducer.parameters
    if value.opcode is Opcode.TUPLE:
        value = _source(value.operands[-1])
    if value.opcode is Opcode.GET_TUPLE_ELEMENT and value.operands[0].opcode is Opcode.CALL:
        (call,) = value.operands
        if set(call.operands) != set(parameters) or call.called[0].root.opcode is not Opcode.TUPLE:
            return None
        parameters = call.called[0].parameters
        value = _source(call.called[0].root.operands[value.tuple_index])
    if len(parameters) != 2 or len(value.operands) != 2:
        return None
    return value if set(map(_source, value.operands)) == set(parameters) else None


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
