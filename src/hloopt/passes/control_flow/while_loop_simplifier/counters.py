"""Induction variables that go in step are computed from one of them."""

from __future__ import annotations

from collections.abc import Mapping

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.tuples import is_parameter_element, make_tuple, read_element
from hloopt.passes.control_flow.while_loop_simplifier.annotations import Leaves
from hloopt.passes.control_flow.while_loop_simplifier.state import (
    MayApply,
    StateChange,
    change_state,
)

_COUNTED_TYPES = frozenset(f"{sign}{bits}" for sign in "su" for bits in (8, 32, 64))
"""Types of induction variables that are merged: XLA leaves those of other widths alone."""


def merge_induction_variables(loop: Instruction, may_apply: MayApply) -> int:
    """Let a loop count once where several integers of one type go up or down by constants.

    The others are `first value + trips * step` in loop and after it, so that only the counter of
    trips changes: one that is there, from 0 up by 1, or a new one. How many. O(elements).
    """
    root = loop.called[0].root
    if root.opcode is not Opcode.TUPLE:
        return 0
    by_type: dict[str, dict[int, Instruction]] = {}
    for index in range(len(root.operands)):
        step = _step(loop, index)
        if step is not None:
            by_type.setdefault(step.shape.type_name, {})[index] = step
    merged = 0
    for steps in by_type.values():
        if len(steps) < 2 or not may_apply():
            continue
        counter = next((i for i in steps if _counts_trips(loop, i, steps[i])), None)
        others = {index: step for index, step in steps.items() if index != counter}
        change = _OneCounter(loop, others, counter)
        _say_origins(change_state(loop, change), change.origins)
        merged += len(others)
    return merged


def _step(loop: Instruction, index: int) -> Instruction | None:
    """The constant that the body adds to an integer of the state, if that is all it does."""
    addition = loop.called[0].root.operands[index]
    shape = addition.shape
    if addition.opcode is not Opcode.ADD or not shape.is_scalar:
        return None
    if shape.type_name not in _COUNTED_TYPES:
        return None
    left, right = addition.operands
    for read, step in ((left, right), (right, left)):
        if (
            step.opcode is Opcode.CONSTANT
            and is_parameter_element(read)
            and read.tuple_index == index
        ):
            return step
    return None


def _counts_trips(loop: Instruction, index: int, step: Instruction) -> bool:
    init = loop.operands[0]
    if init.opcode is not Opcode.TUPLE or init.operands[index].opcode is not Opcode.CONSTANT:
        return False
    return (init.operands[index].payload.strip(), step.payload.strip()) == ("0", "1")


def _say_origins(state: Instruction, origins: Mapping[int, str | None]) -> None:
    """Let what reads elements of a state have the original values of these."""
    for read in state.users:
        if read.opcode is Opcode.GET_TUPLE_ELEMENT and "origin" not in read.attributes:
            origin = origins.get(read.tuple_index)
            if origin is not None:
                read.set_attribute("origin", origin)


class _OneCounter(StateChange):
    def __init__(
        self, loop: Instruction, steps: Mapping[int, Instruction], counter: int | None
    ) -> None:
        elements = loop.shape.elements
        self._count = len(elements)
        self._steps = steps
        self.origins = {
            index: loop.called[0].root.operands[index].attributes.get("origin") for index in steps
        }
        self._is_new = counter is None
        self._counter = self._count if counter is None else counter
        self._type: Shape = next(iter(steps.values())).shape
        self.shape = tuple_shape((*elements, self._type) if self._is_new else elements)

    def inward(self, old: Instruction) -> Instruction:
        if not self._is_new:
            return old
        elements = [read_element(old, index) for index in range(self._count)]
        return make_tuple(old.parent, [*elements, self._constant(old, "0")])

    def outward(self, new: Instruction) -> Instruction:
        elements = [read_element(new, index) for index in range(self._count)]
        for index, step in self._steps.items():
            elements[index] = self._value(new, elements[index], step, self.origins[index])
        return make_tuple(new.parent, elements)

    def following(self, old: Instruction, new: Instruction) -> Instruction:
        elements = [
            read_element(new if index in self._steps else old, index)
            for index in range(self._count)
        ]
        if self._is_new:
            trips = read_element(new, self._counter)
            one = self._constant(new, "1")
            elements.append(new.parent.add(Opcode.ADD, self._type, [trips, one]))
        return make_tuple(new.parent, elements)

    def leaves(self, old: Leaves, blank: str) -> Leaves:
        return [*old, blank] if self._is_new else old

    def _value(
        self, new: Instruction, first: Instruction, step: Instruction, origin: str | None
    ) -> Instruction:
        parent = new.parent
        trips = read_element(new, self._counter)
        step = parent.add_clone(step, [])
        distance = parent.add(Opcode.MULTIPLY, self._type, [trips, step])
        value = parent.add(Opcode.ADD, self._type, [first, distance])
        if origin is not None:
            value.set_attribute("origin", origin)
        return value

    def _constant(self, beside: Instruction, payload: str) -> Instruction:
        return beside.parent.add(Opcode.CONSTANT, self._type, payload=payload)
