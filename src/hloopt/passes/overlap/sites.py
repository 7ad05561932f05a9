"""Instructions that decisions are about: collectives, and transfers to and from the host."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.passes.async_ops.host_transfers import is_transfer


def is_site(instruction: Instruction) -> bool:
    """Whether decisions may be about an instruction that is not asynchronous."""
    return instruction.opcode in COLLECTIVES or is_transfer(instruction)


def moved(site: Instruction) -> Instruction:
    """The instruction that moves to another trip of a loop where a collective or transfer is
    pipelined: itself, for a slice that is stored on the host the value that waits to be."""
    return site.operands[1] if site.opcode is Opcode.DYNAMIC_UPDATE_SLICE else site


def comes_from_host(transfer: Instruction) -> bool:
    """Whether a transfer brings a value to the device."""
    return not transfer.shape.is_on_host
