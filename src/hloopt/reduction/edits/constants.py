"""Make scalar constants small: bounds of loops first, so that they have less trips."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar

from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession


class LowerConstants:
    """Give integer constants a smaller value."""

    what: ClassVar[Count] = Count("constant made smaller", "constants made smaller")
    one_by_one: ClassVar[bool] = False

    def __init__(self, value: int) -> None:
        self._value = value

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Scalar constants above the value, those of loop conditions first."""
        conditions = {loop.called[1] for loop in module.instructions(Opcode.WHILE)}
        found = [i for i in module.instructions(Opcode.CONSTANT) if _value_of(i) > self._value]
        return [i.name for i in sorted(found, key=lambda i: i.parent not in conditions)]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Give the constants of these names the value."""
        for constant in session.module.instructions(Opcode.CONSTANT):
            if constant.name in parts:
                constant.set_payload(str(self._value))


def _value_of(constant: Instruction) -> int:
    """The value of an integer scalar; -1 for any other constant."""
    element = constant.shape.element_type
    if not constant.shape.is_scalar or element is None or element.kind not in _INTEGERS:
        return -1
    text = constant.payload.strip()
    return int(text) if text.isdecimal() and len(text) < _LONGEST else -1


_INTEGERS = ("signed", "unsigned")
_LONGEST = 19
