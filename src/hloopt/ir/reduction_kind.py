"""The reduction kind: the operation of an all-reduce, reduce-scatter or reduce on two scalars."""

from __future__ import annotations

from enum import StrEnum

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


class ReductionKind(StrEnum):
    """The operations that collectives of all backends know."""

    SUM = "sum"
    PRODUCT = "product"
    MIN = "minimum"
    MAX = "maximum"


_KINDS = {
    Opcode.ADD: ReductionKind.SUM,
    Opcode.MULTIPLY: ReductionKind.PRODUCT,
    Opcode.MINIMUM: ReductionKind.MIN,
    Opcode.MAXIMUM: ReductionKind.MAX,
}
_KINDS_OF_TRUTH_VALUES = {Opcode.AND: ReductionKind.MIN, Opcode.OR: ReductionKind.MAX}


def operation_kind(operation: Instruction) -> ReductionKind | None:
    """The kind of reduction that an operation on two values is a step of; else None.

    `and` and `or` of truth values are their minimum and maximum.
    """
    is_logic = operation.shape.type_name == "pred"
    return (_KINDS_OF_TRUTH_VALUES if is_logic else _KINDS).get(operation.opcode)


def reduction_kind(computation: Computation) -> ReductionKind | None:
    """The kind of a computation that is one operation on its two parameters; else None.

    O(instructions).
    """
    root = computation.root
    kind = operation_kind(root)
    parameters = computation.parameters
    if kind is None or len(parameters) != 2 or not root.shape.is_scalar:
        return None
    return kind if set(root.operands) == set(parameters) else None
