"""What differs between two modules: computations, instructions, opcode counts, header."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.reports.module_match import ModuleMatch, same_source_text
from hloopt.text import PrintOptions, format_instruction


class Difference(StrEnum):
    """How two things that belong together differ, or on which side the only one is."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    METADATA = "metadata"
    """Nothing but the `metadata` attribute differs, names aside."""
    RENAMED = "renamed"
    """Nothing but names differs: its own, its operands' or those of computations."""


@dataclass(slots=True)
class InstructionLine:
    """One instruction as XLA prints it; large constants are elided where that loses nothing."""

    name: str
    opcode: str
    text: str


@dataclass(slots=True)
class InstructionChange:
    """An instruction that is in both modules with different texts."""

    kind: Difference
    before: InstructionLine
    after: InstructionLine


@dataclass(slots=True)
class ComputationDiff:
    """What differs in one computation; a name is None on the side that has no such computation.

    `moved` names instructions (as in the module after) that stand elsewhere in the schedule: the
    fewest whose removal leaves both orders equal.
    """

    before: str | None
    after: str | None
    size_before: int = 0
    size_after: int = 0
    added: list[InstructionLine] = field(default_factory=list)
    removed: list[InstructionLine] = field(default_factory=list)
    changed: list[InstructionChange] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)

    @property
    def kind(self) -> Difference:
        """RENAMED where only names differ, here and in the instructions. O(changes)."""
        if self.before is None:
            return Difference.ADDED
        if self.after is None:
            return Difference.REMOVED
        if self.added or self.removed or self.moved:
            return Difference.CHANGED
        kinds = {change.kind for change in self.changed}
        if Difference.CHANGED in kinds:
            return Difference.CHANGED
        return Difference.METADATA if Difference.METADATA in kinds else Difference.RENAMED

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, not even the name."""
        return self.before == self.after and not self.count_changes()

    def count_changes(self) -> int:
        """Number of differences between instructions."""
        return len(self.added) + len(self.removed) + len(self.changed) + len(self.moved)

    def totals(self) -> dict[Difference, int]:
        """Number of instructions by kind of difference. O(changes)."""
        totals = dict.fromkeys(Difference, 0)
        totals[Difference.ADDED] = len(self.added)
        totals[Difference.REMOVED] = len(self.removed)
        for change in self.changed:
            totals[change.kind] += 1
        return totals


@dataclass(slots=True)
class OpcodeChange:
    """How often an opcode occurs in each module."""

    opcode: str
    before: int
    after: int

    @property
    def change(self) -> int:
        return self.after - self.before


@dataclass(slots=True)
class AttributeChange:
    """A property of the module's header, as text; None where it is absent."""

    name: str
    before: str | None
    after: str | None


@dataclass(slots=True)
class StackFrameChange:
    """The number of stack frames in each module, where any of the four tables differ."""

    before: int
    after: int
    tables: list[str]
    """Titles of the tables whose entries differ, `StackFrames` last."""


@dataclass(slots=True)
class ModuleDiff:
    """Everything that differs between two modules; holds texts, not the modules."""

    before: str
    after: str
    computations_before: int
    computations_after: int
    instructions_before: int
    instructions_after: int
    attributes: list[AttributeChange]
    stack_frames: StackFrameChange | None
    """None where the tables are equal."""
    opcodes: list[OpcodeChange]
    """Opcodes whose number differs, the largest change first."""
    computations: list[ComputationDiff]
    """Computations that differ: in the order of the module after, then those removed."""

    @property
    def is_identical(self) -> bool:
        """Whether both modules print the same, the order of unscheduled instructions aside."""
        return not (self.attributes or self.stack_frames or self.opcodes or self.computations)

    def computations_of(self, kind: Difference) -> list[ComputationDiff]:
        """The computations that differ in the way `kind`. O(changes)."""
        return [computation for computation in self.computations if computation.kind is kind]

    def instruction_totals(self) -> dict[Difference, int]:
        """Number of instructions by kind of difference, over all computations. O(changes)."""
        totals = dict.fromkeys(Difference, 0)
        for computation in self.computations:
            for kind, number in computation.totals().items():
                totals[kind] += number
        return totals

    def count_moved(self) -> int:
        """Number of instructions that stand elsewhere in the schedule."""
        return sum(len(computation.moved) for computation in self.computations)


def diff_modules(before: Module, after: Module) -> ModuleDiff:
    """What differs between two modules; changes neither.

    Computations belong together by name, then by structure; so do instructions (`ModuleMatch`
    has the whole order of precedence). The order of instructions counts in scheduled modules
    only. O(n log n) in the number of instructions; a computation whose text nobody changed and
    that reads the same in both modules costs no more than the comparison of its text.
    """
    match = ModuleMatch.of(before, after)
    is_scheduled = before.is_scheduled or after.is_scheduled
    attributes = _diff_headers(before, after)
    computations: list[ComputationDiff] = []
    origin = {new: old for old, new in match.computations.items()}
    for new in after.computations.values():
        old = origin.get(new)
        if old is None:
            computations.append(_only_after(new))
            continue
        if old.execution_thread != new.execution_thread:
            label = f"execution_thread of %{new.name}"
            attributes.append(AttributeChange(label, old.execution_thread, new.execution_thread))
        if not same_source_text(old, new):
            difference = _diff_computation(old, new, match, is_scheduled)
            if not difference.is_empty:
                computations.append(difference)
    for old in before.computations.values():
        if old not in match.computations:
            computations.append(_only_before(old))
    return ModuleDiff(
        before=before.name,
        after=after.name,
        computations_before=len(before.computations),
        computations_after=len(after.computations),
        instructions_before=before.instruction_count(),
        instructions_after=after.instruction_count(),
        attributes=attributes,
        stack_frames=_diff_stack_frames(before.stack_frames, after.stack_frames),
        opcodes=_diff_opcodes(before, after),
        computations=computations,
    )


def _diff_headers(before: Module, after: Module) -> list[AttributeChange]:
    old = {"name": before.name, **before.attributes}
    new = {"name": after.name, **after.attributes}
    return [
        AttributeChange(name, old.get(name), new.get(name))
        for name in dict.fromkeys((*old, *new))
        if _squeeze(old.get(name)) != _squeeze(new.get(name))
    ]


def _squeeze(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())


_TABLES = {
    **{"FileNames": "files", "FunctionNames": "functions"},
    **{"FileLocations": "locations", "StackFrames": "frames"},
}
"""Titles of the tables, and what `StackFrames` calls them."""


def _diff_stack_frames(before: str, after: str) -> StackFrameChange | None:
    if before == after:
        return None
    from hloopt.ir.stack_frames import StackFrames

    old, new = StackFrames.parse(before), StackFrames.parse(after)
    differing = [
        title for title, name in _TABLES.items() if getattr(old, name) != getattr(new, name)
    ]
    return StackFrameChange(len(old.frames), len(new.frames), differing) if differing else None


def _diff_opcodes(before: Module, after: Module) -> list[OpcodeChange]:
    old = Counter(instruction.opcode for instruction in before.instructions())
    new = Counter(instruction.opcode for instruction in after.instructions())
    changes = [
        OpcodeChange(opcode.value, old[opcode], new[opcode])
        for opcode in old.keys() | new.keys()
        if old[opcode] != new[opcode]
    ]
    return sorted(changes, key=lambda change: (-abs(change.change), change.opcode))


def _only_after(computation: Computation) -> ComputationDiff:
    lines = [_line(instruction) for instruction in computation.instructions]
    return ComputationDiff(None, computation.name, size_after=len(lines), added=lines)


def _only_before(computation: Computation) -> ComputationDiff:
    lines = [_line(instruction) for instruction in computation.instructions]
    return ComputationDiff(computation.name, None, size_before=len(lines), removed=lines)


def _diff_computation(
    before: Computation, after: Computation, match: ModuleMatch, is_scheduled: bool
) -> ComputationDiff:
    difference = ComputationDiff(before.name, after.name, len(before), len(after))
    matched: list[Instruction] = []
    for old in before.instructions:
        new = match.instructions.get(old)
        if new is None:
            difference.removed.append(_line(old))
            continue
        matched.append(new)
        change = _diff_instruction(old, new, match)
        if change is not None:
            difference.changed.append(change)
    found = set(matched)
    difference.added = [_line(new) for new in after.instructions if new not in found]
    if is_scheduled:
        position = {new: number for number, new in enumerate(after.instructions)}
        order = [position[new] for new in matched]
        difference.moved = [matched[index].name for index in _out_of_order(order)]
    return difference


_ELIDED = PrintOptions.default()
_WHOLE = PrintOptions(print_large_constants=True)


def _line(instruction: Instruction, options: PrintOptions = _ELIDED) -> InstructionLine:
    text = format_instruction(instruction, options)
    if instruction.is_root:
        text = f"ROOT {text}"
    return InstructionLine(instruction.name, instruction.opcode.value, text)


def _diff_instruction(
    before: Instruction, after: Instruction, match: ModuleMatch
) -> InstructionChange | None:
    if before.text is not None and before.text == after.text and before.is_root == after.is_root:
        return None
    old, new = _line(before), _line(after)
    if old.text == new.text:
        if before.payload == after.payload:
            return None
        old, new = _line(before, _WHOLE), _line(after, _WHOLE)
        if old.text == new.text:
            return None
    return InstructionChange(_kind_of_change(before, after, match), old, new)


def _kind_of_change(before: Instruction, after: Instruction, match: ModuleMatch) -> Difference:
    """The kind of difference between two instructions with different texts."""
    if (
        before.opcode is not after.opcode
        or before.shape is not after.shape
        or before.payload != after.payload
        or before.is_root != after.is_root
        or _partners(before.operands, match) != list(after.operands)
        or set(_partners(before.control_predecessors, match)) != set(after.control_predecessors)
        or _callees(before, match) != _callees(after, match)
    ):
        return Difference.CHANGED
    if before.attributes == after.attributes:
        return Difference.RENAMED
    if _without_metadata(before.attributes) == _without_metadata(after.attributes):
        return Difference.METADATA
    return Difference.CHANGED


def _partners(instructions: Iterable[Instruction], match: ModuleMatch) -> list[Instruction | None]:
    return [match.instructions.get(instruction) for instruction in instructions]


def _callees(instruction: Instruction, match: ModuleMatch) -> list[Hashable]:
    return [match.callees.get(called, called) for called in instruction.called]


def _without_metadata(attributes: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in attributes.items() if key != "metadata"}


def _out_of_order(order: Sequence[int]) -> list[int]:
    """Indices of the fewest items whose removal leaves `order` ascending. O(n log n)."""
    tails: list[int] = []  # the smallest last value of an ascending run of each length
    ends: list[int] = []  # the index of that value
    previous: list[int] = []
    for index, value in enumerate(order):
        length = bisect_left(tails, value)
        previous.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [value]
        ends[length : length + 1] = [index]
    kept: set[int] = set()
    index = ends[-1] if ends else -1
    while index >= 0:
        kept.add(index)
        index = previous[index]
    return [index for index in range(len(order)) if index not in kept]
