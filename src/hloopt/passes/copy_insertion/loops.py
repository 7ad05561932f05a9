"""Copies of the state of while loops."""

from __future__ import annotations

from hloopt.analysis.dataflow import slots_of
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.passes.copy_insertion.deep_copy import (
    replace_by_copy,
    replace_operand,
    replace_root,
)
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.rewriting.deep_copy import can_be_copied

TRANSFERS = (Opcode.SEND, Opcode.RECV, Opcode.COPY_START)
"""Opcodes that start a transfer: their result is in use until it is done, and cannot be copied."""
_SWITCHES = ("xla_disable_while_loop_copies", "xla.disable_while_loop_copies")


def copy_loop_state(loop: Instruction, facts: Facts) -> None:
    """Copy the changing state before a loop, and in its body at the parameter and at the root.

    The copy at the parameter runs before the one at the root, so that all of the old state may be
    read before the new one is written.
    """
    if has_copies_disabled(loop):
        return
    slots = _changing_slots(loop, facts)
    if not slots:
        return
    replace_operand(loop, 0, slots)
    body = loop.called[0]
    before = replace_by_copy(body.parameters[0], slots)
    after = replace_root(body, slots)
    for slot, copy in after.items():
        copy.add_control_predecessor(before[slot])


def has_copies_disabled(loop: Instruction) -> bool:
    """Whether a loop has asked for no copies of its state."""
    return any(frontend_attribute(loop, name) == "true" for name in _SWITCHES)


def _changing_slots(loop: Instruction, facts: Facts) -> list[int]:
    """The arrays that are not the same before and after the loop, and may be copied."""
    init = loop.operands[0]
    slots = slots_of(loop.shape)
    transfers: set[int] = set()
    if init.opcode is Opcode.TUPLE:
        for number, operand in enumerate(init.operands):
            if operand.opcode in TRANSFERS:
                part = slots.element(number)
                transfers.update(range(part.start, part.stop))
    found = []
    for slot, shape in enumerate(slots.parts):
        if can_be_copied(shape) and slot not in transfers:
            before, after = facts.value_of(init, slot), facts.value_of(loop, slot)
            if before is None or before != after:
                found.append(slot)
    return found
