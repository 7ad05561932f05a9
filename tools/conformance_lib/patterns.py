"""Patterns of instructions and their operands: `["add", "%p", ["constant", {"literal": 1}]]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.literals import constant_value
from conformance_lib.scene import Scene
from conformance_lib.selectors import has_opcode, select_one
from hloopt.ir import Instruction, Opcode, Shape, parse_shape
from hloopt.ir.attributes.values import parse_ints, parse_string
from hloopt.ir.shapes.shape import compatible


def mismatch(scene: Scene, pattern: Any, instruction: Instruction) -> str | None:
    """The reason why `instruction` does not match a pattern, or None where it does.

    Raises RecordError for a malformed pattern.
    """
    if pattern == "*":
        return None
    if isinstance(pattern, str):
        if pattern.startswith("%"):
            wanted = select_one(scene, pattern)
            return None if wanted is instruction else f"{show(instruction)} is not {show(wanted)}"
        return _opcode_mismatch(pattern, instruction)
    if not isinstance(pattern, list) or not pattern or not isinstance(pattern[0], str):
        raise RecordError(f"malformed pattern {pattern!r}")
    opcode, *operands = pattern
    conditions = operands.pop() if operands and isinstance(operands[-1], dict) else {}
    if opcode != "*" and (reason := _opcode_mismatch(opcode, instruction)):
        return reason
    reason = _condition_mismatch(conditions, instruction)
    if reason is None and (operands or not conditions):
        commutative = conditions.get("commutative", False)
        reason = _operands_mismatch(scene, operands, instruction, commutative)
    return reason


def show(instruction: Instruction) -> str:
    """A short form of an instruction for messages."""
    operands = ", ".join(f"%{operand.name}" for operand in instruction.operands[:8])
    if instruction.payload:
        operands = instruction.payload[:40]
    return f"%{instruction.name} = {instruction.opcode}({operands})"


def shape_is(shape: Shape, expected: str) -> bool:
    """Whether a shape is as a table says: without layout unless the text has one."""
    wanted = parse_shape(expected)
    return shape is wanted if "{" in expected else compatible(shape, wanted)


def _opcode_mismatch(opcode: str, instruction: Instruction) -> str | None:
    return None if has_opcode(instruction, opcode) else f"{show(instruction)} is no {opcode}"


def _operands_mismatch(
    scene: Scene, patterns: list[Any], instruction: Instruction, commutative: bool
) -> str | None:
    operands = instruction.operands
    exact = "..." not in patterns
    if not exact:
        if patterns.index("...") != len(patterns) - 1:
            raise RecordError("'...' stands for further operands: only at the end")
        patterns = patterns[:-1]
    if len(operands) < len(patterns) or (exact and len(operands) > len(patterns)):
        bound = "" if exact else "at least "
        return f"{show(instruction)} has not {bound}{len(patterns)} operands"
    reasons = [
        next(filter(None, _each_mismatch(scene, patterns, order)), None)
        for order in ([operands, operands[::-1]] if commutative else [operands])
    ]
    return None if None in reasons else reasons[0]


def _each_mismatch(
    scene: Scene, patterns: list[Any], operands: list[Instruction]
) -> Iterator[str | None]:
    for pattern, operand in zip(patterns, operands, strict=False):
        yield mismatch(scene, pattern, operand)


def _condition_mismatch(conditions: dict[str, Any], instruction: Instruction) -> str | None:
    for key, expected in conditions.items():
        if key == "commutative":
            continue
        holds = _CONDITIONS.get(key)
        if holds is None:
            raise RecordError(f"unknown condition '{key}' of a pattern")
        if not holds(instruction, expected):
            return f"{show(instruction)} does not have {key} {expected}"
    return None


def _has_index(instruction: Instruction, expected: int) -> bool:
    if instruction.opcode is Opcode.PARAMETER:
        return instruction.parameter_number == expected
    if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
        return instruction.tuple_index == expected
    raise RecordError(f"{instruction.opcode} has no index")


def _has_target(instruction: Instruction, expected: str) -> bool:
    text = instruction.attributes.get("custom_call_target")
    return text is not None and parse_string(text) == expected


def _has_dimensions(instruction: Instruction, expected: list[int]) -> bool:
    text = instruction.attributes.get("dimensions")
    return text is not None and list(parse_ints(text)) == expected


_CONDITIONS: dict[str, Callable[[Instruction, Any], bool]] = {
    "index": _has_index,
    "literal": lambda instruction, expected: constant_value(instruction) == expected,
    "shape": lambda instruction, expected: shape_is(instruction.shape, expected),
    "custom_call_target": _has_target,
    "dimensions": _has_dimensions,
    "direction": lambda instruction, expected: instruction.attributes.get("direction") == expected,
    "name": lambda instruction, expected: instruction.name == expected,
}
