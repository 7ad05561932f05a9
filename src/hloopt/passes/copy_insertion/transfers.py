"""Copies around transfers that one trip of a loop starts and the next one finishes."""

from __future__ import annotations

from hloopt.analysis.calls import loops_with_body
from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.passes.copy_insertion.deep_copy import all_slots, copy_operand, replace_by_copy

_DONES = {
    Opcode.SEND: Opcode.SEND_DONE,
    Opcode.RECV: Opcode.RECV_DONE,
    Opcode.COPY_START: Opcode.COPY_DONE,
}


def copy_around_transfer(start: Instruction) -> None:
    """Copy what a transfer reads or writes where it outlives a trip of a loop.

    Its own result cannot be copied while it is under way. Raises PassRefused if that has several
    users.
    """
    if not start.users:
        return
    if len(start.users) > 1:
        raise PassRefused(
            "Non-copyable op must have a single user.",
            span=start.parent.module.span_of(start),
            help=f"%{start.name} has {len(start.users)}: only its done may use it, or one tuple "
            "that carries it into the next trip of a loop",
        )
    (user,) = start.users
    if user.opcode is _DONES[start.opcode]:
        return
    if start.operands and user.opcode is Opcode.TUPLE and _is_only_loop_state(user):
        copy_operand(start, 0)
        return
    if not loops_with_body(start.parent) or not (user.is_root and user.opcode is Opcode.TUPLE):
        return
    done = _done_of_previous(start.parent, user.operands.index(start), _DONES[start.opcode])
    if done is None:
        return
    if start.operands:
        for copy in copy_operand(start, 0).values():
            copy.add_control_predecessor(done)
    start.add_control_predecessor(done)
    if done.users:
        for copy in replace_by_copy(done, all_slots(done)).values():
            start.add_control_predecessor(copy)


def _is_only_loop_state(value: Instruction) -> bool:
    return len(value.users) == 1 and next(iter(value.users)).opcode is Opcode.WHILE


def _done_of_previous(body: Computation, number: int, opcode: Opcode) -> Instruction | None:
    """The instruction that finishes the transfer that the previous trip left in the state."""
    for element in elements_of_state(body, number):
        if len(element.users) == 1:
            (user,) = element.users
            if user.opcode is opcode:
                return user
    return None


def elements_of_state(body: Computation, number: int) -> list[Instruction]:
    """The get-tuple-elements that read one element of a loop's state. O(users)."""
    return [
        user
        for user in body.parameters[0].users
        if user.opcode is Opcode.GET_TUPLE_ELEMENT and user.tuple_index == number
    ]
