"""Replacing an instruction by another, as all passes of XLA do it."""

from __future__ import annotations

from collections.abc import Container, Sequence

from hloopt.analysis.async_operations import SEND_RECV, SEND_RECV_DONE
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depends_on

_MOST_BEFORE = 1000
_TAKE_TRANSFERS = (Opcode.TUPLE, *SEND_RECV_DONE)
_TUPLES = (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT)
OF_THE_VALUE = ("sharding", "origin")
"""Attributes that describe an instruction's value, not what it does."""


def shardings_differ(a: Instruction, b: Instruction) -> bool:
    """Whether both instructions have shardings, and different ones."""
    ours = a.attribute("sharding")
    if ours is None:
        return False
    theirs = b.attribute("sharding")
    return theirs is not None and ours != theirs


def replace_instruction(old: Instruction, new: Instruction) -> None:
    """Let all users of `old`, the root included, use `new`, and remove `old`.

    What only `old` says is kept: `new` takes over its metadata where it has no op_name, its
    frontend attributes and its sharding where it has none, and its control dependencies.
    O(users + control edges).
    """
    inherit(old, new)
    old.move_control_dependencies_to(new)
    old.replace_all_uses_with(new)
    old.parent.remove(old)


def inherit(old: Instruction, new: Instruction) -> None:
    """Give `new` the annotations of `old` that it has nothing of."""
    theirs = old.attributes
    if "op_name=" in theirs.get("metadata", "") and "op_name=" not in new.attributes.get(
        "metadata", ""
    ):
        new.set_attribute("metadata", theirs["metadata"])
    for name in ("frontend_attributes", "sharding"):
        if name in theirs and name not in new.attributes:
            new.set_attribute(name, theirs[name])


def attributes_for_another_value(instruction: Instruction) -> dict[str, str]:
    """The annotations of an instruction without those of its value: for one that gives another."""
    return {k: v for k, v in instruction.attributes.items() if k not in OF_THE_VALUE}


def forget_value(instruction: Instruction) -> None:
    """Drop what is said of the value that an instruction gave before it changed."""
    for name in OF_THE_VALUE:
        if name in instruction.attributes:
            instruction.set_attribute(name, None)


def hand_value_on(old: Instruction, new: Instruction) -> None:
    """Let all users of `old` use `new`, which gives from now on what `old` gave; that stays.

    What was said of that value is said of `new`. O(users).
    """
    for name in OF_THE_VALUE:
        if name in old.attributes:
            new.set_attribute(name, old.attributes[name])
    forget_value(old)
    old.replace_all_uses_with(new)


def control_dependencies_can_move(old: Instruction, new: Instruction) -> bool:
    """Whether `new` can take over the control predecessors of `old` without a cycle.

    O(1) without such predecessors, else O(instructions before them): where these are more than a
    thousand, the answer is no, so that passes which ask for each instruction stay linear.
    """
    return all(
        depends_on(predecessor, new, most=_MOST_BEFORE) is False
        for predecessor in old.control_predecessors
        if predecessor is not new
    )


def why_not_in_its_place(
    read: Instruction, value: Instruction, orphans: Container[Instruction] = ()
) -> str | None:
    """The reason why a value must not take the place of a get-tuple-element that gives it.

    The tuple of a send or recv in flight goes into another one, or to its done, and has one
    consumer: the tuple that holds it has to go with the read, and with `orphans`, which are removed
    where nothing reads them. O(users).
    """
    if value.opcode not in SEND_RECV:
        return None
    if read.is_root or any(user.opcode not in _TAKE_TRANSFERS for user in read.users):
        return f"%{value.name} is in flight: only its done and tuples take it"
    for holder in value.users:
        if not _goes_with(holder, read, orphans):
            return f"%{value.name} is in flight: %{holder.name}, which holds it, has other uses"
    return None


def _goes_with(holder: Instruction, read: Instruction, orphans: Container[Instruction]) -> bool:
    """Whether a tuple that holds what is read is removed once the read is. O(users)."""
    seen, waiting = {read}, [holder]
    while waiting:
        instruction = waiting.pop()
        if instruction in seen:
            continue
        seen.add(instruction)
        is_needed = instruction.is_root or instruction.opcode not in _TUPLES
        if is_needed or not (instruction.users or instruction in orphans):
            return False
        waiting += instruction.users
    return True


def remove_unused(instructions: Sequence[Instruction]) -> None:
    """Remove those of some instructions, users before operands, that nothing needs any more."""
    for instruction in instructions:
        if (
            instruction in instruction.parent
            and not instruction.users
            and not instruction.is_root
            and not instruction.has_control_dependencies
            and instruction.opcode is not Opcode.PARAMETER
        ):
            instruction.parent.remove(instruction)
