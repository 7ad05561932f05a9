"""A loop carries one flat tuple instead of nested ones."""

from __future__ import annotations

from hloopt.analysis.async_operations import OWN_DONES, SEND_RECV_DONE
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.passes.control_flow.while_loop_simplifier.state import (
    MayApply,
    StateChange,
    change_state,
)

_ENDS = ASYNC.union(OWN_DONES, SEND_RECV_DONE)
_LEAD_ON = frozenset((Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER))


def flatten_state(loop: Instruction, may_apply: MayApply) -> int:
    """Flatten a state that has tuples in it; how many arrays it has then. O(elements).

    One with an operation in flight stays: what starts and what ends one share a tuple.
    """
    if not any(element.is_tuple for element in loop.shape.elements):
        return 0
    if _carries_operation(loop) or not may_apply():
        return 0
    change = _Flat(loop.shape)
    change_state(loop, change)
    return len(change.shape.elements)


def _carries_operation(loop: Instruction) -> bool:
    """Whether an operation in flight ends in a trip, or after the last one.

    It is known as far as get-tuple-elements and barriers lead to its end. O(users).
    """
    taken = [loop.called[0].parameters[0], loop]
    while taken:
        for user in taken.pop().users:
            if user.opcode in _ENDS:
                return True
            if user.opcode in _LEAD_ON and user.shape.is_tuple:
                taken.append(user)
    return False


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
