"""Operand lists that know where each operand stands: for instructions with many of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hloopt.ir.instruction import Instruction

MANY_OPERANDS = 64
"""From how many operands on an index is faster than a look at each of them."""


class IndexedOperands(list["Instruction"]):
    """The operands of an instruction, of which one after the other is replaced.

    Looking through all of them each time would be quadratic for the tuple at the end of a module,
    which may have tens of thousands. Made in O(operands).
    """

    __slots__ = ("_places",)

    def __init__(self, operands: Iterable[Instruction]) -> None:
        super().__init__(operands)
        self._places: dict[Instruction, list[int]] = {}
        for place, operand in enumerate(self):
            self._places.setdefault(operand, []).append(place)

    def places(self, operand: Instruction) -> list[int]:
        """Where an operand stands, in order. O(its places)."""
        return sorted(self._places.get(operand, ()))

    def exchange(self, old: Instruction, new: Instruction) -> None:
        """Put `new` everywhere where `old` stands. O(places of `old`)."""
        places = self._places.pop(old)
        for place in places:
            super().__setitem__(place, new)
        self._places.setdefault(new, []).extend(places)


def index_operands(instruction: Instruction) -> IndexedOperands:
    """The operands of an instruction, indexed from now on."""
    operands = instruction.operands
    if not isinstance(operands, IndexedOperands):
        instruction.operands = operands = IndexedOperands(operands)
    return operands


def operand_numbers(instruction: Instruction, operand: Instruction) -> list[int]:
    """The numbers under which an instruction has an operand.

    O(operands) where they are few, or once where they are many; after that O(those numbers).
    """
    operands = instruction.operands
    if len(operands) < MANY_OPERANDS:
        return [number for number, given in enumerate(operands) if given is operand]
    return index_operands(instruction).places(operand)
