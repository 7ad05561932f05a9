"""Rules about send and recv: channels, host transfers, and schedules that would wait for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.attribute_values import parse_frontend_attributes, parse_int_lists
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.transfers import PAIRS, has_cycle
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken

_DONE_OF = {Opcode.SEND_DONE: Opcode.SEND, Opcode.RECV_DONE: Opcode.RECV}


def check_transfers(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """A send-done or recv-done has the channel and the host-transfer flag of its start.

    Where the start is behind a loop's parameter, nothing is compared.
    """
    for done in found:
        start = done.operands[0] if done.opcode in _DONE_OF and done.operands else None
        if start is None or start.opcode not in (Opcode.SEND, Opcode.RECV):
            continue
        if start.opcode is not _DONE_OF[done.opcode]:
            yield broken(
                done,
                f"The operand of a {done.opcode} instruction needs to be {_DONE_OF[done.opcode]}, "
                f"found {start.opcode}",
            )
        elif _is_host(start) != _is_host(done):
            yield broken(
                done,
                "Expected instructions to have the same is-host-transfer property as "
                f"%{start.name}",
            )
        elif start.attributes.get("channel_id") != done.attributes.get("channel_id"):
            yield broken(done, f"Expected to have the same channel id as %{start.name}")


def _is_host(instruction: Instruction) -> bool:
    return instruction.attributes.get("is_host_transfer") == "true"


def check_host_channels(
    module: Module, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """The sends or recvs of host transfers on one channel are alike in all but their operands."""
    first: dict[str, Instruction] = {}
    for instruction in found:
        channel = instruction.attributes.get("channel_id")
        if channel is None or not _is_host(instruction):
            continue
        other = first.setdefault(channel, instruction)
        if other is instruction:
            continue
        is_alike = other.opcode is instruction.opcode and other.shape is instruction.shape
        if not (is_alike and _compared(other) == _compared(instruction)):
            yield broken(
                instruction,
                "Host-transfer send/recv instructions that use the same channel must be "
                f"identical up to having different operands; %{other.name} differs",
            )


_NOT_COMPARED = frozenset(("frontend_attributes", "metadata", "origin", "sharding", "statistics"))


def _compared(transfer: Instruction) -> tuple[object, ...]:
    """The attributes that host transfers on one channel share."""
    others = {k: v for k, v in transfer.attributes.items() if k not in _NOT_COMPARED}
    return _frontend(transfer), others


def check_deadlocks(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """In a schedule, sends and recvs between devices come in pairs that can meet.

    A pair has the same source-target pairs, each device once on either side, without a cycle.
    Collectives that run as one group may come in any order.
    """
    if not computation.module.is_scheduled:
        return
    if any("_collectives_group" in _frontend(caller) for caller in computation.callers):
        return
    open_transfer: Instruction | None = None
    for instruction in found:
        if instruction.opcode not in (Opcode.SEND, Opcode.RECV) or _is_host(instruction):
            continue
        if open_transfer is None:
            open_transfer = instruction
            continue
        if open_transfer.opcode is instruction.opcode:
            other = Opcode.RECV if instruction.opcode is Opcode.SEND else Opcode.SEND
            yield broken(
                instruction,
                f"Expected {other} to match {instruction.opcode} %{open_transfer.name}, which is "
                "scheduled before",
            )
            return
        reason = _why_no_pair(open_transfer, instruction)
        if reason:
            yield broken(
                instruction,
                f"Expected send and recv instructions to have {reason} (the other one is "
                f"%{open_transfer.name})",
            )
        open_transfer = None


def _frontend(instruction: Instruction) -> dict[str, str]:
    text = instruction.attributes.get("frontend_attributes")
    try:
        return dict(parse_frontend_attributes(text)) if text else {}
    except HloError:  # another rule says so
        return {}


def _why_no_pair(first: Instruction, second: Instruction) -> str | None:
    pairs = _source_target_pairs(first)
    if pairs != _source_target_pairs(second):
        return "the same source-target pairs"
    next_of = dict(pairs)
    if len(next_of) < len(pairs) or len({target for _, target in pairs}) < len(pairs):
        return "unique source and target pairs"
    return "non-cyclical source-target pairs" if has_cycle(next_of) else None


def _source_target_pairs(instruction: Instruction) -> list[tuple[int, int]]:
    try:
        lists = parse_int_lists(_frontend(instruction).get(PAIRS, "{}"))
    except HloError:
        return []
    return sorted((pair[0], pair[1]) for pair in lists if len(pair) == 2)
