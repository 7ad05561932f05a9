"""Elements of a loop's state that nobody needs, or no trip changes, are not carried."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.control_flow.while_loop_simplifier.state import (
    MayApply,
    hands_on,
    is_read_by_element,
    keep_elements,
)


def remove_dead_elements(loop: Instruction, may_apply: MayApply, effects: SideEffects) -> int:
    """Drop elements that only the next trip takes over, with what computes them; how many.

    An element that the body hands on and nothing else reads is, after the loop, what it was
    before. Loops with `xla_disable_while_loop_dce` stay. O(size of body and condition).
    """
    if frontend_attribute(loop, "xla_disable_while_loop_dce") == "true":
        return 0
    body = loop.called[0]
    if body.root.opcode is not Opcode.TUPLE:
        return 0
    if not is_read_by_element(loop):
        return 0
    kept = _needed_elements(loop, effects)
    count = len(loop.shape.elements) - len(kept)
    if not (count and may_apply()):
        return 0
    keep_elements(loop, sorted(kept), {})
    return count


def _needed_elements(loop: Instruction, effects: SideEffects) -> set[int]:
    """The elements from which the condition, side effects and users of the loop are computed."""
    body, condition = loop.called
    states = (body.parameters[0], condition.parameters[0])
    root, values = body.root, body.root.operands
    needed = {index for index in _used_after(loop) if not hands_on(body, index)}
    stack = [condition.root, *(values[index] for index in sorted(needed))]
    for computation in loop.called:
        for instruction in computation.instructions:
            is_tied = instruction.has_control_dependencies and instruction is not root
            if is_tied or effects.of(instruction):
                stack.append(instruction)
    seen: set[Instruction] = set()
    while stack:
        instruction = stack.pop()
        if instruction in seen:
            continue
        seen.add(instruction)
        stack += instruction.operands
        if instruction.operands and instruction.operands[0] in states:
            index = instruction.tuple_index
            if index not in needed:
                needed.add(index)
                stack.append(values[index])
    return needed


def _used_after(loop: Instruction) -> Iterable[int]:
    """The elements of a loop's state that are read after it."""
    count = len(loop.shape.elements)
    if loop.is_root or any(user.opcode is not Opcode.GET_TUPLE_ELEMENT for user in loop.users):
        return range(count)
    return {user.tuple_index for user in loop.users if user.users or user.is_root}
