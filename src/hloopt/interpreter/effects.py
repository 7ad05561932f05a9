"""What a program does beside computing its result: outfeeds, custom calls with side effects."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.interpreter.values import Value
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import (
    IDENTITIES,
    MANUAL_BOUNDARIES,
    MOVED,
    NEW_BUFFERS,
    SHARDING_GROUP,
    custom_call_target,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_NO_EFFECT = IDENTITIES | NEW_BUFFERS | MANUAL_BOUNDARIES | {MOVED, SHARDING_GROUP}


class Effect(NamedTuple):
    """Something done once, by one device."""

    instruction: Instruction
    kind: str
    """`outfeed`, or the target of a custom call in quotes: what has to agree between programs."""
    operands: tuple[Value, ...]


class RunRecord:
    """What can be said of a run beside its results."""

    def __init__(self) -> None:
        self.effects: dict[int, list[Effect]] = {}
        """By device, in the order in which they happened."""
        self.ran: set[Computation] = set()
        """The computations that were run on some device."""
        self.made_up: dict[str, Instruction] = {}
        """What stand-ins were made for, each with an instruction."""
        self.steps = 0
        """Instructions, over all devices."""

    def add(self, other: RunRecord) -> None:
        """Count another run in, effects aside."""
        self.ran |= other.ran
        self.made_up |= other.made_up
        self.steps += other.steps


def has_effect(instruction: Instruction) -> bool:
    """Whether the outside world can tell that an instruction ran."""
    if instruction.opcode is Opcode.OUTFEED:
        return True
    return (
        instruction.opcode is Opcode.CUSTOM_CALL
        and instruction.attributes.get("custom_call_has_side_effect") == "true"
        and custom_call_target(instruction) not in _NO_EFFECT
    )


def effect_of(instruction: Instruction, operands: tuple[Value, ...]) -> Effect:
    """The effect of an instruction that has one."""
    if instruction.opcode is Opcode.OUTFEED:
        return Effect(instruction, "outfeed", operands)
    return Effect(instruction, f'"{custom_call_target(instruction)}"', operands)
