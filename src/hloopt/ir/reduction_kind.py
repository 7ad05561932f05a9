"""What the computation of an all-reduce, reduce-scatter or reduce does with two scalars."""

from __future__ import annotations

from enum import StrEnum

from hloopt.ir.computation import Computation
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


def reduction_kind(computation: Computation) -> ReductionKind | None:
    """The kind of a computation that is one operation on its two parameters; else None.

    `and` and `or` of truth values are their minimum and maximum. O(instructions).
    """
    root = computation.root
    if root.shape.type_name == "pred":
        kind = _KINDS_OF_TRUTH_VALUES.get(root.opcode)
    else:
        kind = _KINDS.get(root.opcode)
    parameters = computation.parameters
    if kind is None or len(parameters) != 2 or not root.shape.is_scalar:
        return None
    return kind if set(root.operands) == set(parameters) else None
