"""The rule against deadlocks: sends and recvs of a schedule that never meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.attributes.typed import has_host_transfer
from hloopt.ir.attributes.values import parse_frontend_attributes, parse_int_lists
from hloopt.ir.computation import Computation
from hloopt.ir.devices.transfers import PAIRS, has_cycle
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken

_WAITS_FOR_ALL = frozenset(
    (
        *(Opcode.ALL_GATHER, Opcode.ALL_TO_ALL, Opcode.RAGGED_ALL_TO_ALL),
        *(Opcode.COLLECTIVE_BROADCAST, Opcode.COLLECTIVE_PERMUTE),
    )
)
"""Collectives that XLA refuses between a send and its recv; it allows all others."""
_Pairs = tuple[tuple[int, int], ...]


class _Transfer(NamedTuple):
    """A send or recv between devices whose other half has not come yet."""

    instruction: Instruction
    pairs: _Pairs

    @property
    def opcode(self) -> Opcode:
        return self.instruction.opcode


class _Frame:
    """A computation that is being run: the steps that are left, and a key of its start state."""

    __slots__ = ("key", "left")

    def __init__(self, computation: Computation, open_transfer: _Transfer | None) -> None:
        self.key = computation, open_transfer and (open_transfer.opcode, open_transfer.pairs)
        self.left = _steps(computation)


def check_deadlocks(
    module: Module, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """In a schedule, sends and recvs between devices come in pairs that can meet.

    Called computations run at the call, branches one after the other. Both halves of a pair have
    the same source-target pairs, each device once on either side, without a cycle; between them
    there is no other transfer and none of `_WAITS_FOR_ALL`. Collectives that run as one group may
    come in any order. O(instructions), once per open transfer with which a computation is called.
    """
    if not module.is_scheduled or all(map(has_host_transfer, found)):
        return
    open_transfer: _Transfer | None = None
    ends: dict[tuple[object, ...], _Transfer | None] = {}
    frames = [_Frame(module.entry, None)]
    while frames:
        frame = frames[-1]
        step = next(frame.left, None)
        if step is None:
            frames.pop()
            ends[frame.key] = open_transfer
        elif isinstance(step, Computation):
            called = _Frame(step, open_transfer)
            if called.key in ends:
                open_transfer = ends[called.key]
            else:
                frames.append(called)
        else:
            try:
                open_transfer = _after(step, open_transfer)
            except HloError as error:
                yield broken(step, error.message)
                return
    if open_transfer is not None:
        other = Opcode.RECV if open_transfer.opcode is Opcode.SEND else Opcode.SEND
        yield broken(open_transfer.instruction, f"Expected {other} to match {open_transfer.opcode}")


def _steps(computation: Computation) -> Iterator[Instruction | Computation]:
    """Transfers, waiting collectives and called computations, in the order they run."""
    for instruction in computation.instructions:
        if instruction.called:
            if "_collectives_group" not in frontend_attributes(instruction):
                yield from instruction.called
        elif instruction.opcode in _WAITS_FOR_ALL or (
            instruction.opcode in (Opcode.SEND, Opcode.RECV) and not has_host_transfer(instruction)
        ):
            yield instruction


def frontend_attributes(instruction: Instruction) -> dict[str, str]:
    """The frontend attributes of an instruction; none if malformed, which another rule reports."""
    text = instruction.attributes.get("frontend_attributes")
    try:
        return dict(parse_frontend_attributes(text)) if text else {}
    except HloError:
        return {}


def _after(instruction: Instruction, before: _Transfer | None) -> _Transfer | None:
    """The open transfer after `instruction`, with `before` open until then.

    Raises HloVerifyError for an instruction that would deadlock.
    """
    if instruction.opcode in _WAITS_FOR_ALL:
        if before is None:
            return None
        raise HloVerifyError(
            f"Introducing this {instruction.opcode} will cause a deadlock: {before.opcode} "
            f"%{before.instruction.name} is scheduled before, and what matches it is not"
        )
    transfer = _Transfer(instruction, _source_target_pairs(instruction))
    if before is None:
        return transfer
    if before.opcode is instruction.opcode:
        other = Opcode.RECV if instruction.opcode is Opcode.SEND else Opcode.SEND
        raise HloVerifyError(
            f"Expected {other} to match {before.opcode} %{before.instruction.name}, which is "
            "scheduled before"
        )
    if reason := _why_no_pair(before.pairs, transfer.pairs):
        raise HloVerifyError(
            f"Expected send and recv instructions to have {reason} (the other one is "
            f"%{before.instruction.name})"
        )
    return None


def _why_no_pair(first: _Pairs, second: _Pairs) -> str | None:
    if first != second:
        return "the same source-target pairs"
    next_of = dict(first)
    if len(next_of) < len(first) or len(set(next_of.values())) < len(first):
        return "unique source and target pairs"
    return "non-cyclical source-target pairs" if has_cycle(next_of) else None


def _source_target_pairs(transfer: Instruction) -> _Pairs:
    text = frontend_attributes(transfer).get(PAIRS)
    if text is None:
        raise HloVerifyError(
            f"Instruction {transfer.name} does not have source-target pairs attribute",
            help=f"state them as frontend_attributes={{{PAIRS}={{{{0,1}}}}}}",
        )
    lists = parse_int_lists(text)
    if any(len(pair) != 2 for pair in lists):
        raise HloVerifyError(f"{PAIRS} holds something that is not a pair: {text}")
    return tuple((source, target) for source, target in lists)
