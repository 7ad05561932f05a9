"""Copies of the arrays in a value of any shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hloopt.analysis.async_operations import SEND_RECV
from hloopt.analysis.dataflow import slots_of
from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.tuples import element, make_tuple


def plain_copy(value: Instruction) -> Instruction:
    """A new copy of an array."""
    return value.parent.add(Opcode.COPY, value.shape, [value])


def deep_copy(
    value: Instruction,
    slots: Iterable[int],
    make_copy: Callable[[Instruction], Instruction] = plain_copy,
) -> tuple[Instruction, dict[int, Instruction]]:
    """`value` with its arrays in some slots copied, and these copies by slot.

    `value` itself where none is. Tokens and buffers are never copied, nor is a send or recv that
    stands in it; tuples are made anew. Linear in the elements of tuples that hold a copied array.
    Raises ShapeError for tuples that are nested too deeply.
    """
    parts = slots_of(value.shape).parts
    wanted = {slot for slot in slots if can_be_copied(parts[slot])}
    chosen = sorted(wanted.difference(_slots_in_flight(value)), reverse=True)
    if not chosen:
        return value, {}
    value.shape.check_depth()
    copies: dict[int, Instruction] = {}
    stack = [_Tuple(value, 0)]
    while True:
        part = stack[-1]
        if part.is_done:
            stack.pop()
            if not stack:
                return part.result(), copies
            stack[-1].elements.append(part.result())
            continue
        inner, start, end = part.next()
        if not chosen or chosen[-1] >= end:
            part.elements.append(inner)
        elif inner.shape.is_tuple:
            stack.append(_Tuple(inner, start))
        else:
            slot = chosen.pop()
            copies[slot] = make_copy(inner)
            part.elements.append(copies[slot])


def can_be_copied(shape: Shape) -> bool:
    """Whether a part of a shape is something that copies are made of."""
    return not (shape.is_tuple or shape.is_token or shape.is_buffer)


def _slots_in_flight(value: Instruction) -> Iterator[int]:
    """The slots of sends and recvs in nested tuples: these have one consumer, and stay whole."""
    stack = [(value, 0)]
    while stack:
        inner, start = stack.pop()
        slots = slots_of(inner.shape)
        if inner.opcode in SEND_RECV:
            yield from range(start, start + len(slots.parts))
        elif inner.opcode is Opcode.TUPLE:
            places = zip(inner.operands, slots.element_starts[:-1], strict=True)
            stack += ((operand, start + first) for operand, first in places)


class _Tuple:
    """A tuple, or at the top an array, on its way into a copy."""

    def __init__(self, value: Instruction, start: int) -> None:
        self.value = value
        self.start = start
        """Its slot."""
        self.elements: list[Instruction] = []
        self._starts = slots_of(value.shape).element_starts

    @property
    def is_done(self) -> bool:
        return len(self.elements) == max(1, len(self._starts) - 1)

    def next(self) -> tuple[Instruction, int, int]:
        """The next element, its slot, and the one after its last."""
        if not self.value.shape.is_tuple:
            return self.value, self.start, self.start + 1
        number = len(self.elements)
        start, end = self._starts[number], self._starts[number + 1]
        return element(self.value, number), self.start + start, self.start + end

    def result(self) -> Instruction:
        if not self.value.shape.is_tuple:
            return self.elements[0]
        return make_tuple(self.value.parent, self.elements)
