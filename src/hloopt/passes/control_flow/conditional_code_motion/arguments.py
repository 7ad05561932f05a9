"""The tuple that a conditional hands to branches, while operations in it make way for operands."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import make_tuple


class Handed:
    """A tuple handed to branches, or one inside of such a tuple, with what it holds by now."""

    def __init__(self, elements: list[Instruction]) -> None:
        self.slots: list[Instruction | Handed | None] = list(elements)
        """The elements; None is an empty tuple."""
        self.places: dict[Instruction, list[int]] = {}
        """The slots of each element."""
        self.around: tuple[Handed, int] | None = None
        """The tuple that this one is an element of, and a slot there."""
        for place, each in enumerate(elements):
            self.places.setdefault(each, []).append(place)

    def nest(self, tuple_: Instruction, inner: Handed) -> None:
        """Let a tuple among the elements change as well."""
        for place in self.places.pop(tuple_):
            self.slots[place] = inner
            inner.around = self, place

    def replace_by_operands(self, operation: Instruction) -> None:
        """Put the operands of an element in its place.

        The first of them take its slots, more come at the end, and what is there stays there. Slots
        that nothing takes hold an empty tuple.
        """
        free = self.places.pop(operation)
        for place in free:
            self.slots[place] = None
        for operand in dict.fromkeys(operation.operands):
            if operand in self.places:
                continue
            if free:
                place, *free = free
            else:
                place = len(self.slots)
                self.slots.append(None)
            self.slots[place] = operand
            self.places[operand] = [place]

    def build(self, original: Instruction, inner: dict[Handed, Instruction]) -> Instruction:
        """The tuple outside of the branches; `inner` says what was built of those in it."""
        parent = original.parent
        elements = []
        for slot in self.slots:
            if slot is None:
                slot = make_tuple(parent, ())
            elements.append(inner[slot] if isinstance(slot, Handed) else slot)
        if original.opcode is Opcode.TUPLE and original.operands == elements:
            return original
        built = make_tuple(parent, elements)
        if "metadata" in original.attributes and original.opcode is Opcode.TUPLE:
            built.set_attribute("metadata", original.attributes["metadata"])
        return built


class Plan:
    """The operations that move with one operand of the conditional, and what takes its place."""

    def __init__(self, group: list[Instruction]) -> None:
        self.argument = group[0]
        self.tuples: dict[Instruction, Handed] = {}
        """The tuples among what moves: they stay outside, with other elements."""
        self.homes: dict[Instruction, Handed] = {}
        """Operations that move, users first, with the tuple that holds their operands."""
        places: dict[Instruction, Handed] = {}
        for instruction in group:
            home = places.get(instruction)
            if instruction.opcode is Opcode.TUPLE:
                inner = self.tuples[instruction] = Handed(instruction.operands)
                if home is not None:
                    home.nest(instruction, inner)
                home = inner
            else:
                home = self.homes[instruction] = home or Handed([instruction])
                home.replace_by_operands(instruction)
            places.update(dict.fromkeys(instruction.operands, home))
        self.handed = self.tuples.get(self.argument) or self.homes[self.argument]

        self.built: dict[Handed, Instruction] = {}
        """The tuples outside, once they are built."""

    def build(self) -> Instruction:
        """The new operand of the conditional."""
        for original, handed in reversed(self.tuples.items()):
            self.built[handed] = handed.build(original, self.built)
        if self.handed not in self.built:
            self.built[self.handed] = self.handed.build(self.argument, self.built)
        return self.built[self.handed]

    def is_changed(self, tuple_: Instruction) -> bool:
        """Whether one of the tuples is built anew."""
        return self.built[self.tuples[tuple_]] is not tuple_
