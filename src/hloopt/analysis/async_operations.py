"""Asynchronous operations in their two spellings, brought to one form.

An operation such as an all-gather is split into a start and a done either by opcodes of its own
(`all-gather-start`) or by an async-start around a computation that holds it.
"""

from __future__ import annotations

from typing import NamedTuple

from hloopt.ir import Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.attributes.typed import has_host_transfer
from hloopt.ir.opcode import ASYNC


class AsyncForm(NamedTuple):
    """The step of an operation that an instruction is: async-start, async-done, or all of it."""

    outer: Opcode
    inner: Opcode
    """The operation itself: all-gather, copy, call …"""


OWN_STARTS = {
    Opcode.ALL_REDUCE_START: Opcode.ALL_REDUCE,
    Opcode.ALL_GATHER_START: Opcode.ALL_GATHER,
    Opcode.COLLECTIVE_PERMUTE_START: Opcode.COLLECTIVE_PERMUTE,
    Opcode.COPY_START: Opcode.COPY,
}
"""Starts with opcodes of their own, send and recv aside, and what they start."""
OWN_DONES = {
    Opcode.ALL_REDUCE_DONE: Opcode.ALL_REDUCE,
    Opcode.ALL_GATHER_DONE: Opcode.ALL_GATHER,
    Opcode.COLLECTIVE_PERMUTE_DONE: Opcode.COLLECTIVE_PERMUTE,
    Opcode.COPY_DONE: Opcode.COPY,
}
SEND_RECV = (Opcode.SEND, Opcode.RECV)
SEND_RECV_DONE = (Opcode.SEND_DONE, Opcode.RECV_DONE)
_BEGINNINGS = frozenset((Opcode.ASYNC_START, *OWN_STARTS, *SEND_RECV))
SYNC_COLLECTIVES = frozenset(
    (
        *(Opcode.ALL_GATHER, Opcode.ALL_REDUCE, Opcode.ALL_TO_ALL, Opcode.RAGGED_ALL_TO_ALL),
        *(Opcode.COLLECTIVE_BROADCAST, Opcode.COLLECTIVE_PERMUTE, Opcode.REDUCE_SCATTER),
    )
)
"""Opcodes of collectives that are not split."""

_FORMS = {
    **{start: AsyncForm(Opcode.ASYNC_START, inner) for start, inner in OWN_STARTS.items()},
    **{done: AsyncForm(Opcode.ASYNC_DONE, inner) for done, inner in OWN_DONES.items()},
    **{
        opcode: AsyncForm(opcode, opcode)
        for opcode in Opcode
        if opcode not in OWN_STARTS and opcode not in OWN_DONES and opcode not in ASYNC
    },
}


def async_form(instruction: Instruction) -> AsyncForm:
    """The form of an instruction; one that is not asynchronous is its opcode in both places."""
    opcode = instruction.opcode
    form = _FORMS.get(opcode)
    return AsyncForm(opcode, wrapped(instruction).opcode) if form is None else form


def wrapped(instruction: Instruction) -> Instruction:
    """The operation that an async-start, -update or -done wraps. O(updates between)."""
    return async_start_of(instruction).called[0].root


def is_pair(start: Instruction, done: Instruction) -> bool:
    """Whether one instruction begins and one ends an operation of the same opcode, a send or recv
    too, whether others may run beside it or not. O(updates between)."""
    if start.opcode not in _BEGINNINGS:
        return False  # most are not
    if start.opcode in SEND_RECV:
        return done.opcode is SEND_RECV_DONE[SEND_RECV.index(start.opcode)]
    return async_form(done) == (Opcode.ASYNC_DONE, async_form(start).inner)


def exchanges(start: Instruction) -> bool:
    """Whether devices meet in what an instruction does or starts, wherever an async-start has it:
    a collective, a send or a recv. O(1); for an async-start around other work linear in that."""
    opcode = start.opcode
    if opcode is not Opcode.ASYNC_START:
        return opcode in SEND_RECV or OWN_STARTS.get(opcode, opcode) in SYNC_COLLECTIVES
    if start.called[0].root.opcode in SYNC_COLLECTIVES:
        return True
    seen = {start.called[0]}
    waiting = list(seen)
    while waiting:
        for instruction in waiting.pop().instructions:
            if instruction.opcode is not Opcode.ASYNC_START and exchanges(instruction):
                return True
            new = [callee for callee in instruction.called if callee not in seen]
            seen.update(new)
            waiting += new
    return False


def is_on_other_thread(instruction: Instruction) -> bool:
    """Whether an async-start, -update or -done runs on another thread than where it stands."""
    callee = async_start_of(instruction).called[0]
    return callee.execution_thread != instruction.parent.execution_thread


def is_host_transfer(instruction: Instruction) -> bool:
    """Whether a send or recv, or the one that a done completes, is with the host."""
    if instruction.opcode in SEND_RECV_DONE and instruction.operands:
        instruction = instruction.operands[0]
    return instruction.opcode in SEND_RECV and has_host_transfer(instruction)
