"""Groups of equal changes, with the places where they occur."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from hloopt.analysis.content import Content
from hloopt.ir.instruction import Instruction
from hloopt.reports.diff.changes import Difference, InstructionChange, InstructionLine


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """The place of a change; the name before is None if added, the name after if removed."""

    computation: str
    before: str | None
    after: str | None


@dataclass(slots=True)
class ChangeGroup:
    """Equal changes of instructions: the text of the first, and the places of all."""

    kind: Difference
    opcode: str
    what: tuple[str, ...]
    before: InstructionLine | None
    after: InstructionLine | None
    places: list[ChangePlace] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.places)


class ChangeFolder:
    """Groups equal changes; `groups` are in the order of their first changes.

    Changes of partners are equal if opcode, parts and values are; added or removed instructions
    if all but names, metadata and channels is, opcodes and shapes of operands included.
    """

    def __init__(self, content: Content) -> None:
        self._content = Content(content.ignored | {"metadata", "channels"})
        self._numbers: dict[Hashable, int] = {}
        self.groups: list[ChangeGroup] = []

    def add_change(self, change: InstructionChange, computation: str) -> int:
        """Add a change of partners to its group; returns the index of the group."""
        values = [
            None if name.startswith("metadata") else value
            for name, value in zip(change.what, change.values, strict=True)
        ]
        key = change.kind, change.after.opcode, change.what, tuple(values)
        place = ChangePlace(computation, change.before.name, change.after.name)
        group = ChangeGroup(
            change.kind, change.after.opcode, change.what, change.before, change.after
        )
        return self._add(key, group, place)

    def add_one_sided(
        self, kind: Difference, instruction: Instruction, line: InstructionLine
    ) -> int:
        """Add an instruction without a partner to its group; returns the index of the group."""
        is_new = kind is Difference.ADDED
        place = ChangePlace(
            instruction.parent.name,
            None if is_new else line.name,
            line.name if is_new else None,
        )
        content = self._content
        key = (
            *(kind, instruction.opcode, content.shape(instruction.shape)),
            *(content.attributes(instruction), content.payload(instruction)),
            tuple([(o.opcode, content.shape(o.shape)) for o in instruction.operands]),
        )
        before, after = (None, line) if is_new else (line, None)
        return self._add(key, ChangeGroup(kind, line.opcode, (), before, after), place)

    def _add(self, key: Hashable, group: ChangeGroup, place: ChangePlace) -> int:
        number = self._numbers.setdefault(key, len(self.groups))
        if number == len(self.groups):
            self.groups.append(group)
        self.groups[number].places.append(place)
        return number
