"""Keys for the contents of modules and instructions, without ignored classes of content."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hloopt.analysis.content.classes import CLASSES
from hloopt.analysis.content.frames import FrameKeys
from hloopt.analysis.content.kernel_locations import without_locations
from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.explicit import are_explicit, explicit_attributes
from hloopt.ir.attributes.opcode_attributes import canonical_value, implied_attributes
from hloopt.ir.attributes.shapes import parse_shapes
from hloopt.ir.attributes.values import (
    format_frontend_attributes,
    parse_frontend_attributes,
    parse_metadata,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.entry_layout import format_entry_layout, parse_entry_layout
from hloopt.ir.shapes.shape import Shape, format_shape, without_layout

Items = tuple[tuple[str, str], ...]
"""Attributes with their values as XLA prints them, sorted by name."""

_LONG = 200  # characters of a literal
_SHARDY = "xla.sdy."
_LAYOUTS = ("operand_layout_constraints",)
"""Attributes of instructions whose values are shapes with layouts."""
_LOCATION_FIELDS = (
    *("source_file", "source_line", "source_end_line", "source_column", "source_end_column"),
    "stack_frame_id",
)


class Content:
    """Computes keys of modules and instructions, without the classes of content in `ignored`.

    Keys of several modules are comparable if one `Content` made them.
    """

    def __init__(self, ignored: frozenset[str] = frozenset()) -> None:
        self.ignored = ignored
        classes = [CLASSES[name] for name in sorted(ignored)]
        self._without = frozenset[str]().union(*(c.attributes for c in classes))
        self._header_without = frozenset[str]().union(*(c.header for c in classes))
        self._ignores_locations = not ignored.isdisjoint(("metadata", "locations"))
        self._items: dict[tuple[Opcode, Items], Items] = {}
        self._frames = FrameKeys()

    def shape(self, shape: Shape) -> Shape:
        """The shape, with default layouts if layouts are ignored."""
        return without_layout(shape) if "layout" in self.ignored else shape

    def payload(self, instruction: Instruction) -> str:
        """The number of a parameter, or the literal of a constant.

        Short literals are as XLA prints them; from long ones only white space is removed.
        """
        if instruction.opcode is not Opcode.CONSTANT:
            return instruction.payload.strip()
        if "constants" in self.ignored:
            return ""
        text = instruction.payload
        if len(text) > _LONG:
            return "".join(text.split())
        return canonical_literal(text, instruction.shape)

    def exact_payload(self, instruction: Instruction) -> str:
        """The payload as XLA prints it, literals of any length. O(length)."""
        if instruction.opcode is not Opcode.CONSTANT or "constants" in self.ignored:
            return self.payload(instruction)
        return canonical_literal(instruction.payload, instruction.shape)

    def attributes(self, instruction: Instruction) -> Items:
        """Attributes that are not ignored, without references to computations and instructions.

        An attribute that the shape implies may be written or left out: such instructions get
        different keys though they mean the same. `differing_attributes` is exact. Each distinct
        text is parsed once.
        """
        opcode = instruction.opcode
        given = tuple(
            [item for item in instruction.attributes.items() if item[0] not in self._without]
        )
        key = opcode, given
        found = self._items.get(key)
        if found is None:
            values = {**implied_attributes(opcode), **dict(given)}
            found = self._canonical(instruction, values)
            if "metadata" not in values:  # that depends on the module's tables
                self._items[key] = found
        return found

    def exact_attributes(self, instruction: Instruction) -> Items:
        """`attributes`, with those that shapes imply as if they were written."""
        if are_explicit(instruction):
            return self.attributes(instruction)
        return self._explicit(instruction)

    def differing_attributes(self, before: Instruction, after: Instruction) -> list[str]:
        """Names of the attributes in which two instructions differ, ignored classes aside.

        Fields of metadata are named one by one: `metadata.op_name`.
        """
        if self._same_text(before, after) or self.attributes(before) == self.attributes(after):
            return []
        old, new = (dict(self._explicit(each)) for each in (before, after))
        names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
        if "metadata" not in names:
            return names
        names.remove("metadata")
        return names + self._differing_fields(before, after)

    def header(self, module: Module) -> dict[str, str]:
        """Attributes of the header that are not ignored, white space normalized."""
        is_ignored = "header" in self.ignored
        found: dict[str, str] = {}
        for name, text in module.attributes.items():
            if is_ignored and name != "is_scheduled":  # which is of the class `order`
                continue
            if name not in self._header_without:
                value = self._header_value(name, text)
                if value is not None:
                    found[name] = " ".join(value.split())
        return found

    # -- attributes -------------------------------------------------------------------------

    def _same_text(self, before: Instruction, after: Instruction) -> bool:
        """Whether attributes are equal as text, and stack frame numbers mean the same frames."""
        if before.opcode is not after.opcode or before.attributes != after.attributes:
            return False
        metadata = before.attributes.get("metadata", "")
        return "stack_frame_id" not in metadata or self._frames.same_tables(before, after)

    def _explicit(self, instruction: Instruction) -> Items:
        try:
            values = explicit_attributes(instruction)
        except HloSyntaxError:
            values = dict(instruction.attributes)
        if "metadata" in instruction.attributes:  # frames are resolved, not renumbered
            values["metadata"] = instruction.attributes["metadata"]
        kept = {name: text for name, text in values.items() if name not in self._without}
        return self._canonical(instruction, kept)

    def _canonical(self, instruction: Instruction, values: Mapping[str, str]) -> Items:
        items = ((name, self._value(instruction, name, text)) for name, text in values.items())
        return tuple(sorted((name, text) for name, text in items if text is not None))

    def _value(self, instruction: Instruction, name: str, text: str) -> str | None:
        try:
            if name == "metadata":
                return self._metadata(instruction, text)
            if name == "frontend_attributes":
                return self._frontend_attributes(text)
            if name in _LAYOUTS and "layout" in self.ignored:
                return ",".join(format_shape(each, layout=False) for each in parse_shapes(text))
            value = canonical_value(instruction.opcode, name, text)
            if name == "backend_config" and value is not None and self._ignores_locations:
                return without_locations(value)
            return value
        except HloSyntaxError:
            return text  # malformed: equal to the same text only

    def _differing_fields(self, before: Instruction, after: Instruction) -> list[str]:
        try:
            old, new = (
                self._fields(each, each.attributes.get("metadata", "{}"))
                for each in (before, after)
            )
        except HloSyntaxError:
            return ["metadata"]
        names = dict.fromkeys((*old, *new))
        return [f"metadata.{name}" for name in names if old.get(name) != new.get(name)]

    def _metadata(self, instruction: Instruction, text: str) -> str | None:
        fields = self._fields(instruction, text)
        return json.dumps(fields) if fields else None

    def _fields(self, instruction: Instruction, text: str) -> dict[str, object]:
        value = parse_metadata(text)
        fields: dict[str, object] = {name: getattr(value, name) for name in type(value).__slots__}
        if "locations" in self.ignored:
            for name in _LOCATION_FIELDS:
                fields.pop(name, None)
        elif value.stack_frame_id:
            module = instruction.parent.module
            fields["stack_frame_id"] = self._frames.key(module, value.stack_frame_id)
        return {name: each for name, each in fields.items() if each}

    def _frontend_attributes(self, text: str) -> str | None:
        values = parse_frontend_attributes(text)
        if "sharding" in self.ignored:
            values = {k: v for k, v in values.items() if not k.startswith(_SHARDY)}
        if "frontend-attributes" in self.ignored:
            values = {k: v for k, v in values.items() if k.startswith(_SHARDY)}
        return format_frontend_attributes(values) if values else None

    # -- header -----------------------------------------------------------------------------

    def _header_value(self, name: str, text: str) -> str | None:
        try:
            if name == "frontend_attributes":
                return self._frontend_attributes(text)
            if name == "entry_computation_layout" and "layout" in self.ignored:
                parameters, result = parse_entry_layout(text)
                return format_entry_layout(
                    [without_layout(each) for each in parameters], without_layout(result)
                )
        except HloSyntaxError:
            pass  # malformed: equal to the same text only
        return text
