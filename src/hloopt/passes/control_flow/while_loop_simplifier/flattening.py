"""A loop carries one flat tuple instead of nested ones."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.passes.control_flow.while_loop_simplifier.state import (
    MayApply,
    StateChange,
    change_state,
)


def flatten_state(loop: Instruction, may_apply: MayApply) -> int:
    """Flatten a state that has tuples in it; how many arrays it has then. O(elements)."""
    if not (any(element.is_tuple for element in loop.shape.elements) and may_apply()):
        return 0
    change = _Flat(loop.shape)
    change_state(loop, change)
    return len(change.shape.elements)


class _Flat(StateChange):
    def __init__(self, nested: Shape) -> None:
        self.nested = nested
        self.shape = tuple_shape(nested.leaves())

    def inward(self, old: Instruction) -> Instruction:
        arrays: list[Instruction] = []
        stack = [old]
        while stack:
            value = stack.pop()
            if value.shape.is_tuple:
                count = len(value.shape.elements)
                stack += [read_element(value, index) for index in reversed(range(count))]
            else:
                arrays.append(value)
        return make_tuple(old.parent, arrays)

    def outward(self, new: Instruction) -> Instruction:
        arrays = (read_element(new, index) for index in range(len(self.shape.elements)))
        open_tuples: list[tuple[Shape, list[Instruction]]] = [(self.nested, [])]
        while True:
            shape, elements = open_tuples[-1]
            if len(elements) < len(shape.elements):
                following = shape.elements[len(elements)]
                if following.is_tuple:
                    open_tuples.append((following, []))
                else:
                    elements.append(next(arrays))
                continue
            open_tuples.pop()
            made = make_tuple(new.parent, elements)
            if not open_tuples:
                return made
            open_tuples[-1][1].append(made)
