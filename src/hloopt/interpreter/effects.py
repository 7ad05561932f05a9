"""The side effects of a program: outfeeds and infeeds, transfers to and from the
host, custom calls with side effects."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from hloopt.interpreter.values import Value
from hloopt.ir.attributes.typed import has_host_transfer
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import (
    BLOCK_SCALING,
    IDENTITIES,
    MANUAL_BOUNDARIES,
    MOVED,
    NEW_BUFFERS,
    SHARDING_GROUP,
    custom_call_target,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_NO_EFFECT = IDENTITIES | NEW_BUFFERS | MANUAL_BOUNDARIES | BLOCK_SCALING | {MOVED, SHARDING_GROUP}


Path: TypeAlias = "tuple[tuple[Instruction, int], ...]"
"""Call stacks from the entry on: callers, each with a number of its own for every time that it
ran a computation."""


class Effect(NamedTuple):
    """Something done once, by one device, that the outside world can tell."""

    instruction: Instruction
    kind: str
    """`outfeed`, `infeed`, a transfer, or the target of a custom call in quotes: what has to agree
    between programs."""
    operands: tuple[Value, ...]
    """The values that went out, or came in."""
    path: Path = ()


class RunRecord:
    """Facts about a run beside its results."""

    def __init__(self) -> None:
        self.effects: dict[int, list[Effect]] = {}
        """By device, in the order in which they happened."""
        self.ran: set[Computation] = set()
        """The computations that were run on some device."""
        self.made_up: dict[str, Instruction] = {}
        """The reasons for stand-in values, each with an instruction."""
        self.is_fed = False
        """Whether the host gave it data."""
        self.steps = 0
        """Instructions, over all devices."""

    def add(self, other: RunRecord) -> None:
        """Count another run in, effects aside."""
        self.ran |= other.ran
        self.made_up |= other.made_up
        self.is_fed |= other.is_fed
        self.steps += other.steps


def has_effect(instruction: Instruction) -> bool:
    """Whether the outside world can tell that an instruction ran."""
    opcode = instruction.opcode
    if opcode in (Opcode.OUTFEED, Opcode.INFEED):
        return True
    if opcode in (Opcode.SEND, Opcode.RECV):
        return has_host_transfer(instruction)
    return (
        opcode is Opcode.CUSTOM_CALL
        and instruction.attributes.get("custom_call_has_side_effect") == "true"
        and custom_call_target(instruction) not in _NO_EFFECT
    )


def kind_of(instruction: Instruction) -> str:
    """The kind of effect of an instruction: see `Effect`."""
    if instruction.opcode in (Opcode.OUTFEED, Opcode.INFEED):
        return str(instruction.opcode)
    if instruction.opcode is Opcode.CUSTOM_CALL:
        return f'"{custom_call_target(instruction)}"'
    attributes = parse_frontend_attributes(instruction.attributes.get("frontend_attributes", "{}"))
    name = attributes.get(_RENDEZVOUS, "")
    toward = "send to" if instruction.opcode is Opcode.SEND else "recv from"
    return f"{toward} the host" + (f" ({name})" if name else "")


_RENDEZVOUS = "_xla_host_transfer_rendezvous"
"""The name by which a program and its host know a transfer; channels may be numbered anew."""
