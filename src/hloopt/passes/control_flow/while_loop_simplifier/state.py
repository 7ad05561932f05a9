"""Changing what a loop carries from trip to trip, with all that reads or makes it.

The loop and its computations are changed in place, so that what stays keeps its name and text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from hloopt.analysis.async_operations import SEND_RECV
from hloopt.analysis.loops.annotation import backend_config
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.tuples import element, is_only_taken_apart, read_element
from hloopt.passes.control_flow.while_loop_simplifier.annotations import (
    LeafMap,
    Leaves,
    annotate,
    notes_of,
)
from hloopt.passes.rewriting.replace import OF_THE_VALUE, inherit

MayApply: TypeAlias = Callable[[], bool]
"""Asks, once it is known that a simplification applies to a loop, whether it may be done."""


class StateChange:
    """A change of a loop's state. Subclasses say how each is made of the other."""

    shape: Shape
    """The new state."""

    def inward(self, old: Instruction) -> Instruction:
        """A new state made of an old one, in the same computation."""
        raise NotImplementedError

    def outward(self, new: Instruction) -> Instruction:
        """The old state that a new one stands for, in the same computation."""
        raise NotImplementedError

    def following(self, old: Instruction, new: Instruction) -> Instruction:
        """The new state after a trip; `old` is what the body made so far, `new` what it takes."""
        return self.inward(old)

    def leaves(self, old: Leaves, blank: str) -> Leaves:
        """The annotations of each array of the new state, given those of the old one."""
        return old


def change_state(loop: Instruction, change: StateChange) -> Instruction:
    """Let a loop carry another state; what uses the loop uses the old state made of that.

    Returns it. Nothing else calls body and condition. O(users of the state + elements).
    """
    body, condition = loop.called
    for computation in (body, condition):
        state = computation.parameters[0]
        notes, users, is_root = notes_of(state), list(state.users), state.is_root
        state.set_shape(change.shape)
        annotate(state, notes, change.leaves)
        redirect(state, change.outward(state), users, is_root)
    root = body.root
    following = change.following(root, body.parameters[0])
    if following is not root:
        annotate(following, notes_of(root), change.leaves)
        body.set_root(following)
    old_init = loop.operands[0]
    init = change.inward(old_init)
    if init is not old_init:
        annotate(init, notes_of(old_init), change.leaves)
    use = _Use(loop)
    _carry(loop, init, change.leaves)
    result = change.outward(loop)
    use.replace(result)
    return result


def keep_elements(loop: Instruction, kept: Sequence[int], same: Mapping[int, int]) -> None:
    """Drop all other elements of a loop's state.

    Those in `same` are equal to a kept one all the time. The rest is either handed on by the
    body and read by nothing else in the loop, or read by nothing that is needed: that goes too.
    Nothing else calls body and condition, which read their states element by element. O(users of
    the state + elements).
    """
    body, condition = loop.called
    before = loop.shape
    stays = [hands_on(body, index) for index in range(len(before.elements))]
    numbers = {old: new for new, old in enumerate(kept)}
    shape = tuple_shape(before.elements[index] for index in kept)
    leaves = _select(before, kept)

    root, notes = body.root, notes_of(body.root)
    if root.users:
        root = body.add(Opcode.TUPLE, shape, [_beside(root, index) for index in kept])
        body.set_root(root)
    else:
        root.set_operands([root.operands[index] for index in kept])
        root.set_shape(shape)
    annotate(root, notes, leaves)
    for computation in (body, condition):
        state = computation.parameters[0]
        notes = notes_of(state)
        state.set_shape(shape)
        annotate(state, notes, leaves)
        unread: list[Instruction] = []
        for read in state.users:
            index = same.get(read.tuple_index, read.tuple_index)
            if index not in numbers:
                unread.append(read)
            elif str(numbers[index]) != read.attributes["index"]:
                read.set_attribute("index", str(numbers[index]))
        for dead in depth_first(unread, lambda instruction: instruction.users):
            computation.remove(dead)

    old_init = loop.operands[0]
    init = loop.parent.add(Opcode.TUPLE, shape, [_beside(old_init, index) for index in kept])
    annotate(init, notes_of(old_init), leaves)
    use = _Use(loop)
    _carry(loop, init, leaves)
    after: list[Instruction] = []
    for index, is_handed_on in enumerate(stays):
        source = index if is_handed_on else same.get(index, index)
        is_kept = source in numbers
        after.append(
            read_element(loop, numbers[source]) if is_kept else read_element(old_init, index)
        )
    use.replace(loop.parent.add(Opcode.TUPLE, before, after))


def _beside(whole: Instruction, index: int) -> Instruction:
    """An element of a state, for a smaller one beside it. O(1).

    A send or recv is read from the state: it has one consumer.
    """
    value = element(whole, index)
    return read_element(whole, index) if value.opcode in SEND_RECV else value


def _select(shape: Shape, kept: Sequence[int]) -> LeafMap:
    """The annotations of the arrays in some elements of a tuple."""
    ends = list(accumulate((len(element.leaves()) for element in shape.elements), initial=0))

    def leaves(old: Leaves, _blank: str) -> Leaves:
        return [leaf for index in kept for leaf in old[ends[index] : ends[index + 1]]]

    return leaves


def hands_on(body: Computation, index: int) -> bool:
    """Whether the root of a loop's body gives an element of the state on as it was taken."""
    value = body.root.operands[index]
    return (
        value.opcode is Opcode.GET_TUPLE_ELEMENT
        and value.tuple_index == index
        and value.operands[0].opcode is Opcode.PARAMETER
    )


def is_read_by_element(loop: Instruction) -> bool:
    """Whether body and condition use the state only element by element. O(users of the states)."""
    return all(is_only_taken_apart(called.parameters[0]) for called in loop.called)


class _Use:
    """The users of a loop and their annotations of its state, taken before the loop changes."""

    def __init__(self, loop: Instruction) -> None:
        self._loop = loop
        self._users = list(loop.users)
        self._is_root = loop.is_root
        self._attributes = loop.attributes

    def replace(self, result: Instruction) -> None:
        """Let these users take `result` instead."""
        inherit(self._loop, result)
        for name in OF_THE_VALUE:
            if name in self._attributes:
                result.set_attribute(name, self._attributes[name])
        redirect(self._loop, result, self._users, self._is_root)


_BY_INDEX = frozenset(("known_induction_variable", "known_init_step", "dynamic_variables"))
"""Parts of the backend_config that are about elements of the state by their numbers."""


def _carry(loop: Instruction, init: Instruction, leaves: LeafMap) -> None:
    notes = notes_of(loop)
    loop.set_operands([init])
    loop.set_shape(init.shape)
    annotate(loop, notes, leaves)
    config = backend_config(loop) or {}
    if not _BY_INDEX.isdisjoint(config):
        rest = {name: value for name, value in config.items() if name not in _BY_INDEX}
        text = json.dumps(rest, separators=(",", ":")) if rest else None
        loop.set_attribute("backend_config", text)


def redirect(
    old: Instruction, new: Instruction, users: Iterable[Instruction], is_root: bool
) -> None:
    """Let these users, and perhaps the computation's root, refer to `new` instead. O(uses)."""
    for user in users:
        user.exchange_operand(old, new)
    if is_root:
        old.parent.set_root(new)
