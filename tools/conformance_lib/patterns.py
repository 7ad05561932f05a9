"""Patterns of instructions and their operands: `["add", "%p", ["constant", {"literal": 1}]]`.

`["any of", P1, P2]` matches what one of the patterns matches; `["async-copy", P, {"to": 1,
"from": 0}]` is the done of an asynchronous copy of P from one memory space to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from conformance_lib.attributes import ATTRIBUTES, attribute_is, read_attribute
from conformance_lib.errors import RecordError
from conformance_lib.forms import Form, unknown_words
from conformance_lib.literals import NUMBER_TEXTS, constant_value, elements, values_agree
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import opcode_problem, selector_problem
from conformance_lib.selectors import has_opcode, select_one
from hloopt.ir import Instruction, Opcode, Shape, parse_shape
from hloopt.ir.attributes.values import parse_ints, parse_string
from hloopt.ir.shapes.shape import compatible


def mismatch(scene: Scene, pattern: Any, instruction: Instruction) -> str | None:
    """The reason why `instruction` does not match a pattern, or None where it does.

    Raises RecordError for a malformed pattern.
    """
    if reason := pattern_problem(pattern):
        raise RecordError(reason)
    return _mismatch(scene, pattern, instruction)


def _mismatch(scene: Scene, pattern: Any, instruction: Instruction) -> str | None:
    if pattern == "*":
        return None
    if isinstance(pattern, str):
        if pattern.startswith("%"):
            wanted = select_one(scene, pattern)
            return None if wanted is instruction else f"{show(instruction)} is not {show(wanted)}"
        return _opcode_mismatch(pattern, instruction)
    opcode, *operands = pattern
    if opcode == "any of":
        reasons = [_mismatch(scene, choice, instruction) for choice in operands]
        return None if None in reasons else "; ".join(filter(None, reasons))
    conditions = operands.pop() if operands and isinstance(operands[-1], dict) else {}
    if opcode == "async-copy":
        return _async_copy_mismatch(scene, operands[0], conditions, instruction)
    if opcode != "*" and (reason := _opcode_mismatch(opcode, instruction)):
        return reason
    reason = _condition_mismatch(conditions, instruction)
    if reason is None and (operands or not conditions):
        commutative = conditions.get("commutative", False)
        reason = _operands_mismatch(scene, operands, instruction, commutative)
    return reason


def _async_copy_mismatch(
    scene: Scene, pattern: Any, spaces: dict[str, int], instruction: Instruction
) -> str | None:
    is_copy = instruction.opcode is Opcode.COPY_DONE
    if not is_copy or instruction.operands[0].opcode is not Opcode.COPY_START:
        return f"{show(instruction)} is no asynchronous copy"
    (source,) = instruction.operands[0].operands[:1]
    for key, end in (("to", instruction), ("from", source)):
        if key in spaces and end.shape.layout.memory_space != spaces[key]:
            return f"{show(end)} is not in memory space {spaces[key]}"
    return _mismatch(scene, pattern, source)


def pattern_problem(pattern: Any) -> str | None:
    """An objection to the words and the build of a pattern."""
    if isinstance(pattern, str):
        if pattern == "*":
            return None
        return selector_problem(pattern) if pattern.startswith("%") else opcode_problem(pattern)
    if not isinstance(pattern, list) or not pattern or not isinstance(pattern[0], str):
        return f"malformed pattern {pattern!r}"
    opcode, *operands = pattern
    conditions = operands.pop() if operands and isinstance(operands[-1], dict) else {}
    if opcode == "async-copy":
        if len(operands) != 1:
            return f"an async-copy has one operand, not {len(operands)}"
        known: Iterable[str] = ("to", "from")
    else:
        known = _CONDITIONS
    if opcode not in ("*", "any of", "async-copy") and (reason := opcode_problem(opcode)):
        return reason
    if reason := unknown_words("condition of a pattern", conditions, known):
        return reason
    if "attr" in conditions and (reason := ATTRIBUTES.problem(conditions["attr"])):
        return reason
    if "..." in operands[:-1]:
        return "'...' stands for further operands: only at the end"
    parts = operands[:-1] if operands[-1:] == ["..."] else operands
    return next(filter(None, map(pattern_problem, parts)), None)


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
        yield _mismatch(scene, pattern, operand)


def _condition_mismatch(conditions: dict[str, Any], instruction: Instruction) -> str | None:
    for key, expected in conditions.items():
        if not _CONDITIONS[key](instruction, expected):
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


def _has_ints(name: str) -> Callable[[Instruction, list[int]], bool]:
    def check(instruction: Instruction, expected: list[int]) -> bool:
        return list(parse_ints(instruction.attributes.get(name, "{}"))) == expected

    return check


def _has_element(instruction: Instruction, expected: object) -> bool:
    """Whether a constant has one element, of this value."""
    values = elements(constant_value(instruction))
    return len(values) == 1 and (
        expected == "any" or values_agree(instruction, values[0], expected)
    )


def _has_literal(instruction: Instruction, expected: object) -> bool:
    return values_agree(instruction, constant_value(instruction), expected)


def _is_in_space(instruction: Instruction, expected: int) -> bool:
    shape = instruction.shape
    if instruction.opcode is Opcode.COPY_START:
        shape = shape.elements[0]
    return not shape.is_tuple and shape.layout.memory_space == expected


def _has_attributes(instruction: Instruction, expected: dict[str, Any]) -> bool:
    return all(
        attribute_is(read_attribute(instruction, key), value) for key, value in expected.items()
    )


_CONDITIONS: dict[str, Callable[[Instruction, Any], bool]] = {
    "attr": _has_attributes,
    "commutative": lambda instruction, expected: True,  # matching operands looks at it
    "custom_call_target": _has_target,
    "dimensions": _has_dimensions,
    "direction": lambda instruction, expected: instruction.attributes.get("direction") == expected,
    "element": _has_element,
    "element_type": lambda instruction, expected: instruction.shape.type_name == expected,
    "index": _has_index,
    "is_stable": lambda instruction, expected: (
        (instruction.attributes.get("is_stable") == "true") == expected
    ),
    "lhs_contracting_dims": _has_ints("lhs_contracting_dims"),
    "literal": _has_literal,
    "memory_space": _is_in_space,
    "name": lambda instruction, expected: instruction.name == expected,
    "operand_count": lambda instruction, expected: len(instruction.operands) == expected,
    "rhs_contracting_dims": _has_ints("rhs_contracting_dims"),
    "scalar": lambda instruction, expected: instruction.shape.is_scalar == expected,
    "shape": lambda instruction, expected: shape_is(instruction.shape, expected),
    "tuple": lambda instruction, expected: instruction.shape.is_tuple == expected,
}

PATTERN = Form(
    pattern_problem, frozenset((*_CONDITIONS, *NUMBER_TEXTS, "any of", "async-copy", "to", "from"))
)
