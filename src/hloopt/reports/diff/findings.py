"""Findings of a comparison of two modules, as data: texts and counts, no references to modules."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.reports.diff.changes import Difference, InstructionChange, InstructionLine
from hloopt.reports.diff.groups import ChangeGroup


@dataclass(slots=True)
class ComputationDiff:
    """The difference of one computation; a name is None on the side that has no partner.

    `moved` names instructions (as in the module after) at other places of the schedule: the fewest
    whose removal leaves both orders equal. `replaced` pairs names of removed and added instructions
    with equal operands and users. `same_as` names a computation of the other module that is equal
    to an added or removed one. Equal `pattern`s mean equal differences.
    """

    before: str | None
    after: str | None
    size_before: int = 0
    size_after: int = 0
    added: list[InstructionLine] = field(default_factory=list)
    removed: list[InstructionLine] = field(default_factory=list)
    changed: list[InstructionChange] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    replaced: list[tuple[str, str]] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    """Indices into `ModuleDiff.groups` of the changes that occur here, ascending."""
    same_as: str | None = None
    pattern: int = 0
    is_renamed: bool = False
    """Whether its name differs and that counts."""

    @property
    def kind(self) -> Difference:
        """The strongest kind of difference; RENAMED if only names differ. O(changes)."""
        if self.before is None:
            return Difference.ADDED
        if self.after is None:
            return Difference.REMOVED
        if self.added or self.removed or self.moved:
            return Difference.CHANGED
        kinds = {change.kind for change in self.changed}
        for kind in (Difference.CHANGED, Difference.REWIRED, Difference.METADATA):
            if kind in kinds:
                return kind
        return Difference.RENAMED

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs that counts."""
        return not (self.is_renamed or self.count_changes())

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
    """The number of instructions of one opcode in each module."""

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
class Renamed:
    """Numbers of partners with different names."""

    instructions: int = 0
    computations: int = 0
    module: bool = False

    @property
    def count(self) -> int:
        return self.instructions + self.computations + self.module


@dataclass(slots=True)
class ModuleDiff:
    """The difference of two modules."""

    before: str
    after: str
    computations_before: int
    computations_after: int
    instructions_before: int
    instructions_after: int
    ignored: tuple[str, ...]
    """The classes of content that do not count, in alphabetical order."""
    renamed: Renamed
    """Counted whether names count or not."""
    attributes: list[AttributeChange]
    stack_frames: StackFrameChange | None
    """None where the tables are equal, or do not count."""
    opcodes: list[OpcodeChange]
    """Opcodes whose number differs, the largest change first."""
    computations: list[ComputationDiff]
    """Computations that differ: in the order of the module after, then those removed."""
    groups: list[ChangeGroup]
    """Changes within computations that both modules have, equal ones together."""

    partners: dict[str, str | None] = field(default_factory=dict, repr=False)
    """Every instruction before by name, with the name of its partner after."""

    @property
    def is_identical(self) -> bool:
        """Whether nothing differs that counts, the order of unscheduled instructions aside."""
        return not (self.attributes or self.stack_frames or self.opcodes or self.computations)

    def computations_of(self, kind: Difference) -> list[ComputationDiff]:
        """The computations whose difference is of `kind`. O(changes)."""
        return [computation for computation in self.computations if computation.kind is kind]

    def instruction_totals(self) -> dict[Difference, int]:
        """Number of instructions by kind of difference, over all computations. O(changes)."""
        totals = dict.fromkeys(Difference, 0)
        for computation in self.computations:
            for kind, number in computation.totals().items():
                totals[kind] += number
        return totals

    def count_moved(self) -> int:
        """Number of instructions at other places of the schedule."""
        return sum(len(computation.moved) for computation in self.computations)
