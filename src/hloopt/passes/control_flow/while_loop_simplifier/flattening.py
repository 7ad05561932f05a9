"""A loop carries one flat tuple instead of nested ones."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.passes.control_flow.while_loop_simplifier.state import (
    MayApply,
    StateChange,
    change_state,
)


def flatten_state(loop: Instruction, may_apply: MayApply) -> int:
    """Flatten a state that has tuples in it; how many elements it has then. O(elements).

    The tuple of a send or recv in flight stays one element: its done takes it whole.
    """
    if not (any(_is_taken_apart(element) for element in loop.shape.elements) and may_apply()):
        return 0
    change = _Flat(loop.shape)
    change_state(loop, change)
    return len(change.shape.elements)


def _is_taken_apart(shape: Shape) -> bool:
    """Whether a shape is a tuple, but not of the kind that a send or recv gives. O(1)."""
    elements = shape.elements
    is_in_flight = (
        len(elements) == 3
        and elements[1].is_scalar
        and elements[1].type_name == "u32"
        and elements[2].is_token
    )
    return shape.is_tuple and not is_in_flight


def _flat_elements(nested: Shape) -> Iterator[Shape]:
    stack = list(reversed(nested.elements))
    while stack:
        shape = stack.pop()
        if _is_taken_apart(shape):
            stack += reversed(shape.elements)
        else:
            yield shape


class _Flat(StateChange):
    def __init__(self, nested: Shape) -> None:
        self.nested = nested
        self.shape = tuple_shape(_flat_elements(nested))

    def inward(self, old: Instruction) -> Instruction:
        elements: list[Instruction] = []
        stack = _parts(old)
        while stack:
            value = stack.pop()
            if _is_taken_apart(value.shape):
                stack += _parts(value)
            else:
                elements.append(value)
        return make_tuple(old.parent, elements)

    def outward(self, new: Instruction) -> Instruction:
        flat = (read_element(new, index) for index in range(len(self.shape.elements)))
        open_tuples: list[tuple[Shape, list[Instruction]]] = [(self.nested, [])]
        while True:
            shape, elements = open_tuples[-1]
            if len(elements) < len(shape.elements):
                following = shape.elements[len(elements)]
                if _is_taken_apart(following):
                    open_tuples.append((following, []))
                else:
                    elements.append(next(flat))
                continue
            open_tuples.pop()
            made = make_tuple(new.parent, elements)
            if not open_tuples:
                return made
            open_tuples[-1][1].append(made)


def _parts(value: Instruction) -> list[Instruction]:
    """Reads of all elements of a value, the first one last. O(elements)."""
    return [read_element(value, index) for index in reversed(range(len(value.shape.elements)))]
