"""The hints that programs give the scheduler, in frontend attributes."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.diagnostics import PassRefused
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.frontend_attributes import frontend_attribute, frontend_attributes

KEEP_ORDER = "keep_original_sequence_order_in_group"
HINT = "scheduler_hint"
PRIORITY = "scheduler_delay_priority"

_DELAYED = (Opcode.CUSTOM_CALL, Opcode.ASYNC_START, Opcode.ASYNC_DONE)


class Hints(NamedTuple):
    """The hint on an instruction's place; "early" and "delay" are meant as scheduling bottom up."""

    force_early: bool = False
    """As near to the end of the program as possible."""
    force_delay: bool = False
    """As near to the beginning of the program as possible."""
    priority: int = 0
    """Among the delayed, the larger the nearer to the beginning."""


NO_HINTS = Hints()


def hints_of(instruction: Instruction, *, is_start: bool, is_done: bool) -> Hints:
    """The hints on an instruction. Raises PassRefused for a priority that is no integer."""
    hint = frontend_attribute(instruction, HINT)
    if hint is None:
        return NO_HINTS
    attributes = frontend_attributes(instruction)
    match hint:
        case "force_early" if instruction.opcode is Opcode.CUSTOM_CALL:
            return Hints(force_early=True)
        case "force_delay" if instruction.opcode in _DELAYED:
            return Hints(force_delay=True, priority=_priority(instruction, attributes))
        case "force_delay_async" if is_start:
            return Hints(force_delay=True, priority=_priority(instruction, attributes))
        case "force_delay_async" if is_done:
            return Hints(force_early=True)
    return NO_HINTS


def asks_for_delay(instruction: Instruction) -> bool:
    """Whether an instruction alone makes its computation worth scheduling."""
    return instruction.opcode in _DELAYED and frontend_attribute(instruction, HINT) == "force_delay"


def _priority(instruction: Instruction, attributes: dict[str, str]) -> int:
    text = attributes.get(PRIORITY, "0")
    try:
        return int(text)
    except ValueError:
        raise PassRefused(
            f"'%{instruction.name}': {PRIORITY}=\"{text}\" is no integer",
            span=instruction.parent.module.span_of(instruction),
        ) from None


def keeps_order(instruction: Instruction) -> bool:
    """Whether members of its group stay in the order they had."""
    return frontend_attribute(instruction, KEEP_ORDER) == "true"
