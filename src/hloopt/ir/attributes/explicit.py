"""Attributes as XLA holds them: what a text leaves out because shapes imply it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hloopt.ir.attributes.opcode_attributes import implied_attributes
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import format_shape


def explicit_attributes(instruction: Instruction) -> dict[str, str]:
    """The attributes with those that XLA prints even where nobody wrote them.

    What XLA leaves out because of its own text (`opcode_attributes.canonical_value`) is still
    there; what it leaves out because of a shape is not. A sharding for a whole tuple is spread
    over the leaves. O(attributes + leaves).
    """
    opcode = instruction.opcode
    values = {**implied_attributes(opcode), **instruction.attributes}
    complete = _BY_OPCODE.get(opcode)
    if complete:
        complete(instruction, values)
    if "sharding" in values and instruction.shape.is_tuple:
        values["sharding"] = _spread(values["sharding"], max(len(instruction.shape.leaves()), 1))
    module = instruction.parent.module
    if "stack_frame_id" in values.get("metadata", ""):
        from hloopt.ir.sources.canonical_frames import canonical_frames

        values["metadata"] = canonical_frames(module).metadata(values["metadata"])
    return values


def are_explicit(instruction: Instruction) -> bool:
    """Whether no shape implies an attribute, so that those implied by the opcode are all. O(1)."""
    if instruction.opcode in _BY_OPCODE:
        return False
    return not instruction.shape.is_tuple or "sharding" not in instruction.attributes


def _map(instruction: Instruction, values: dict[str, str]) -> None:
    """XLA does not look at what is written: a map is over all dimensions."""
    from hloopt.ir.attributes.values import format_ints

    values["dimensions"] = format_ints(range(instruction.shape.rank))


def _outfeed(instruction: Instruction, values: dict[str, str]) -> None:
    if instruction.operands:
        values.setdefault("outfeed_shape", format_shape(instruction.operands[0].shape))


def _compare(instruction: Instruction, values: dict[str, str]) -> None:
    if is_total_order(instruction):
        values["type"] = "TOTALORDER"
    values.pop("order", None)
    if values.get("type", "").strip() == default_comparison_type(instruction):
        del values["type"]


def is_total_order(compare: Instruction) -> bool:
    """Whether a compare of floats orders all of them, NaN and -0 too, by either attribute."""
    stated = compare.attributes
    if stated.get("type") == "TOTALORDER":
        return True
    return stated.get("order") == "TOTAL" and default_comparison_type(compare) == "FLOAT"


def default_comparison_type(compare: Instruction) -> str | None:
    """The `type` of a compare that its operands imply; None where they imply none."""
    element = compare.operands[0].shape.element_type if compare.operands else None
    return _COMPARISON_TYPES.get(element.kind) if element else None


_COMPARISON_TYPES = {
    **{"float": "FLOAT", "complex": "FLOAT", "signed": "SIGNED"},
    **{"unsigned": "UNSIGNED", "pred": "UNSIGNED"},
}
_BY_OPCODE: Mapping[Opcode, Callable[[Instruction, dict[str, str]], None]] = {
    Opcode.MAP: _map,
    Opcode.OUTFEED: _outfeed,
    Opcode.COMPARE: _compare,
}


def _spread(sharding: str, leaves: int) -> str:
    from hloopt.ir.attributes.values.sharding_text import canonical_sharding

    text = canonical_sharding(sharding)
    if text.startswith("{{") or text == "{}":
        return text
    return canonical_sharding(f"{{{','.join([text] * leaves)}}}")
