"""Predicates on instructions as tables have them: data in place of a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance_lib.errors import RecordError
from conformance_lib.forms import unknown_words
from hloopt.ir import Instruction

Predicate = Callable[[Instruction], bool]
PREDICATE_WORDS = ("opcodes", "not_opcodes", "custom_call_targets")


def predicate(value: object, conditions: Mapping[str, Predicate] | None = None) -> Predicate:
    """`true`, `false`, or opcodes and targets of which one holds, with conditions that all hold.

    `conditions` are by the names that the value gives them. Raises RecordError for other words.
    """
    if isinstance(value, bool):
        return lambda instruction: value
    if not isinstance(value, dict) or not value:
        raise RecordError(f"unknown predicate: {value}")
    conditions = conditions or {}
    if reason := unknown_words("part of a predicate", value, [*PREDICATE_WORDS, *conditions]):
        raise RecordError(reason)
    excluded = value.get("not_opcodes")
    opcodes = value.get("opcodes", ())
    targets = [f'"{target}"' for target in value.get("custom_call_targets", ())]
    stated = {name: holds for name, holds in value.items() if name in conditions}
    if false := sorted(name for name, holds in stated.items() if holds is not True):
        raise RecordError(f"a condition that is not true has no meaning: {', '.join(false)}")
    if excluded is not None and len(value) > 1:
        raise RecordError("not_opcodes stands alone")
    wanted = [conditions[name] for name in stated]

    def holds(instruction: Instruction) -> bool:
        opcode = instruction.opcode.value
        if excluded is not None:
            return opcode not in excluded
        is_target = instruction.attributes.get("custom_call_target") in targets
        return (opcode in opcodes or is_target) and all(check(instruction) for check in wanted)

    return holds
