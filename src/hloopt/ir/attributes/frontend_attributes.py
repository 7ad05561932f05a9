"""Frontend attributes of instructions: notes of programs and passes, by name."""

from __future__ import annotations

from collections.abc import Mapping

from hloopt.ir.attributes.values import format_frontend_attributes, parse_frontend_attributes
from hloopt.ir.instruction import Instruction


def frontend_attributes(instruction: Instruction) -> dict[str, str]:
    """All of them, in order; the result is the caller's own. Raises HloSyntaxError."""
    text = instruction.attributes.get("frontend_attributes")
    return {} if text is None else parse_frontend_attributes(text)


def frontend_attribute(instruction: Instruction, name: str) -> str | None:
    """The value of one, or None. Raises HloSyntaxError."""
    as_read = instruction.attribute_text
    if as_read is not None and name not in as_read:
        return None  # most have none: what they have is not split for that
    text = instruction.attributes.get("frontend_attributes")
    if text is None or name not in text:
        return None
    return parse_frontend_attributes(text).get(name)


def common_frontend_attributes(a: Instruction, b: Instruction) -> dict[str, str]:
    """Those that two instructions have with the same value, in the order of `a`."""
    values, others = frontend_attributes(a), frontend_attributes(b).items()
    return {name: value for name, value in values.items() if (name, value) in others}


def set_frontend_attributes(instruction: Instruction, values: Mapping[str, str]) -> None:
    """Replace all of them; none at all where `values` is empty."""
    text = format_frontend_attributes(values) if values else None
    instruction.set_attribute("frontend_attributes", text)
