"""Rules about the channels of sends and recvs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.typed import channel_of, has_host_transfer
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.verifier.deadlocks import frontend_attributes
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
        elif has_host_transfer(start) != has_host_transfer(done):
            yield broken(
                done,
                "Expected instructions to have the same is-host-transfer property as "
                f"%{start.name}",
            )
        elif channel_of(start) != channel_of(done):
            yield broken(done, f"Expected to have the same channel id as %{start.name}")


def check_host_channels(
    module: Module, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """The sends or recvs of host transfers on one channel are alike in all but their operands."""
    first: dict[int, Instruction] = {}
    for instruction in found:
        channel = channel_of(instruction)
        if channel is None or not has_host_transfer(instruction):
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
    """The attributes that must be equal for host transfers on one channel."""
    others = {k: v for k, v in transfer.attributes.items() if k not in _NOT_COMPARED}
    return frontend_attributes(transfer), others
