"""Elements of a loop's state that are the same all the time are carried once."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.control_flow.while_loop_simplifier.state import (
    MayApply,
    hands_on,
    is_read_by_element,
    keep_elements,
)


def merge_repeated_elements(loop: Instruction, may_apply: MayApply) -> int:
    """Drop elements that start as another one does and change in the same way; how many.

    That is found where the body hands both on, or updates the same slice of both with the same.
    O(users of the state).
    """
    return _merge(loop, _handed_on, may_apply) + _merge(loop, _updated, may_apply)


def _merge(
    loop: Instruction, key: Callable[[Instruction, int], Hashable | None], may_apply: MayApply
) -> int:
    init, root = loop.operands[0], loop.called[0].root
    if init.opcode is not Opcode.TUPLE or root.opcode is not Opcode.TUPLE:
        return 0
    if not is_read_by_element(loop):
        return 0
    first: dict[Hashable, int] = {}
    same: dict[int, int] = {}
    for index, value in enumerate(init.operands):
        how = key(loop, index)
        if how is not None:
            other = first.setdefault((value, loop.shape.elements[index], how), index)
            if other != index:
                same[index] = other
    if not (same and may_apply()):
        return 0
    kept = [index for index in range(len(init.operands)) if index not in same]
    keep_elements(loop, kept, same)
    return len(same)


def _handed_on(loop: Instruction, index: int) -> Hashable | None:
    return () if hands_on(loop.called[0], index) else None


def _updated(loop: Instruction, index: int) -> Hashable | None:
    """The value written into an element and its indices, if that is all that happens to it."""
    update = loop.called[0].root.operands[index]
    if update.opcode is not Opcode.DYNAMIC_UPDATE_SLICE:
        return None
    read = update.operands[0]
    if (
        read.opcode is not Opcode.GET_TUPLE_ELEMENT
        or read.operands[0].opcode is not Opcode.PARAMETER
    ):
        return None
    return tuple(update.operands[1:]) if read.tuple_index == index else None
