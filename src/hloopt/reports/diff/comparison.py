"""The comparison of two modules: computations, instructions, opcode counts, header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from hloopt.analysis.content import Content
from hloopt.analysis.matching import ModuleMatch, same_source_text
from hloopt.analysis.matching.sequences import ascending
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.reports.diff.changes import ChangeFinder, Difference, line_of
from hloopt.reports.diff.findings import (
    AttributeChange,
    ComputationDiff,
    ModuleDiff,
    OpcodeChange,
    Renamed,
    StackFrameChange,
)
from hloopt.reports.diff.groups import ChangeFolder

NAMES = frozenset(("names",))
"""Classes of content that are ignored by default."""


def diff_modules(before: Module, after: Module, ignored: frozenset[str] = NAMES) -> ModuleDiff:
    """Compare two modules, without the classes of content in `ignored`; changes neither.

    `ModuleMatch` pairs instructions and computations. The order of instructions counts in
    scheduled modules only. O(n log n) in the number of instructions; an unchanged computation with
    equal text in both modules costs no more than the comparison of its text.
    """
    return _Comparison(before, after, ignored).run()


class _Comparison:
    """Makes a ModuleDiff."""

    def __init__(self, before: Module, after: Module, ignored: frozenset[str]) -> None:
        self.before = before
        self.after = after
        self.content = Content(ignored)
        self.match = ModuleMatch.of(before, after)
        self.finder = ChangeFinder(self.match, self.content, before, after)
        self.folder = ChangeFolder(self.content)
        self.counts_names = "names" not in ignored
        is_scheduled = before.is_scheduled or after.is_scheduled
        self.counts_order = is_scheduled and "order" not in ignored
        self.patterns: dict[Hashable, int] = {}
        self.first_of_body: dict[tuple[Module, int], str] | None = None

    def run(self) -> ModuleDiff:
        before, after = self.before, self.after
        attributes = self._header()
        computations: list[ComputationDiff] = []
        origin = {new: old for old, new in self.match.computations.items()}
        for new in after.computations.values():
            old = origin.get(new)
            if old is None:
                computations.append(self._one_sided(new, Difference.ADDED))
                continue
            if old.execution_thread != new.execution_thread:
                label = f"execution_thread of %{new.name}"
                attributes.append(
                    AttributeChange(label, old.execution_thread, new.execution_thread)
                )
            difference = self._compare(old, new)
            if not difference.is_empty:
                computations.append(difference)
        for old in before.computations.values():
            if old not in self.match.computations:
                computations.append(self._one_sided(old, Difference.REMOVED))
        return ModuleDiff(
            before=before.name,
            after=after.name,
            computations_before=len(before.computations),
            computations_after=len(after.computations),
            instructions_before=before.instruction_count(),
            instructions_after=after.instruction_count(),
            ignored=tuple(sorted(self.content.ignored)),
            renamed=self._renamed(),
            attributes=attributes,
            stack_frames=self._stack_frames(),
            opcodes=_diff_opcodes(before, after),
            computations=computations,
            groups=self.folder.groups,
            partners=self._partner_names(),
        )

    def _renamed(self) -> Renamed:
        return Renamed(
            sum(old.name != new.name for old, new in self.match.instructions.items()),
            sum(old.name != new.name for old, new in self.match.computations.items()),
            self.before.name != self.after.name,
        )

    def _partner_names(self) -> dict[str, str | None]:
        partners = self.match.instructions
        return {
            old.name: partners[old].name if old in partners else None
            for old in self.before.instructions()
        }

    # -- header -----------------------------------------------------------------------------

    def _header(self) -> list[AttributeChange]:
        old, new = self.content.header(self.before), self.content.header(self.after)
        changes = [
            AttributeChange(name, self.before.attributes.get(name), self.after.attributes.get(name))
            for name in dict.fromkeys((*old, *new))
            if old.get(name) != new.get(name)
        ]
        if self.counts_names and self.before.name != self.after.name:
            changes.insert(0, AttributeChange("name", self.before.name, self.after.name))
        return changes

    def _stack_frames(self) -> StackFrameChange | None:
        before, after = self.before.stack_frames, self.after.stack_frames
        if before == after or not self.content.ignored.isdisjoint(("metadata", "locations")):
            return None
        from hloopt.ir.sources.stack_frames import StackFrames

        old, new = StackFrames.parse(before), StackFrames.parse(after)
        differing = [
            title for title, name in _TABLES.items() if getattr(old, name) != getattr(new, name)
        ]
        if not differing:
            return None
        return StackFrameChange(len(old.frames), len(new.frames), differing)

    # -- computations -----------------------------------------------------------------------

    def _one_sided(self, computation: Computation, kind: Difference) -> ComputationDiff:
        bodies = self.finder.bodies()
        number = bodies.computations[computation]
        is_new = kind is Difference.ADDED
        if self.first_of_body is None:
            self.first_of_body = {}
            for module in (self.before, self.after):
                for each in module.computations.values():
                    self.first_of_body.setdefault((module, bodies.computations[each]), each.name)
        same = self.first_of_body.get((self.before if is_new else self.after, number))
        lines = [line_of(instruction) for instruction in computation.instructions]
        difference = ComputationDiff(
            None if is_new else computation.name,
            computation.name if is_new else None,
            same_as=same,
            pattern=self._pattern(kind, number),
        )
        if is_new:
            difference.added, difference.size_after = lines, len(lines)
        else:
            difference.removed, difference.size_before = lines, len(lines)
        return difference

    def _pattern(self, *key: Hashable) -> int:
        return self.patterns.setdefault(key, len(self.patterns))

    def _compare(self, old: Computation, new: Computation) -> ComputationDiff:
        difference = ComputationDiff(old.name, new.name, len(old), len(new))
        difference.is_renamed = self.counts_names and old.name != new.name
        if self._read_the_same(old, new):
            return difference
        partners = self.match.instructions
        folder, name = self.folder, new.name
        groups: list[int] = []
        matched: list[Instruction] = []
        for instruction in old.instructions:
            partner = partners.get(instruction)
            if partner is None:
                line = line_of(instruction)
                difference.removed.append(line)
                groups.append(folder.add_one_sided(Difference.REMOVED, instruction, line))
                continue
            matched.append(partner)
            change = self.finder.compare(instruction, partner)
            if change is not None:
                difference.changed.append(change)
                groups.append(folder.add_change(change, name))
        for instruction in new.instructions:
            if self.finder.is_added(instruction):
                line = line_of(instruction)
                difference.added.append(line)
                groups.append(folder.add_one_sided(Difference.ADDED, instruction, line))
        if self.counts_order:
            place = {instruction: number for number, instruction in enumerate(new.instructions)}
            kept = set(ascending([place[instruction] for instruction in matched]))
            difference.moved = [each.name for i, each in enumerate(matched) if i not in kept]
        difference.replaced = self._replaced(old, new)
        difference.groups = sorted(set(groups))
        difference.pattern = self._pattern(
            tuple(sorted(groups)), len(difference.moved), difference.is_renamed
        )
        return difference

    def _replaced(self, old: Computation, new: Computation) -> list[tuple[str, str]]:
        """Names of removed instructions and of added ones with the same operands and users."""
        partners = self.match.instructions
        places: dict[Hashable, Instruction | None] = {}
        for added in new.instructions:
            if self.finder.is_added(added) and added.operands:
                place = tuple(added.operands), frozenset(added.users), added.is_root
                places[place] = None if place in places else added
        found: list[tuple[str, str]] = []
        for removed in old.instructions if places else ():
            if removed in partners or not removed.operands:
                continue
            reads = tuple([partners.get(operand) for operand in removed.operands])
            users = frozenset(partners.get(user) for user in removed.users)
            replacement = places.get((reads, users, removed.is_root))
            if replacement is not None:
                found.append((removed.name, replacement.name))
        return found

    def _read_the_same(self, old: Computation, new: Computation) -> bool:
        """Whether two computations have equal text, matched callees, and equal stack frames."""
        if not same_source_text(old, new):
            return False
        partners = self.match.computations
        for a, b in zip(old.instructions, new.instructions, strict=True):
            if a.called and [partners.get(called) for called in a.called] != list(b.called):
                return False
        if old.module.stack_frames != new.module.stack_frames:
            return not any("stack_frame_id" in (i.attribute_text or "") for i in old.instructions)
        return True


_TABLES = {
    **{"FileNames": "files", "FunctionNames": "functions"},
    **{"FileLocations": "locations", "StackFrames": "frames"},
}
"""Titles of the tables of stack frames, with the fields of `StackFrames` that hold them."""


def _diff_opcodes(before: Module, after: Module) -> list[OpcodeChange]:
    old = Counter(instruction.opcode for instruction in before.instructions())
    new = Counter(instruction.opcode for instruction in after.instructions())
    changes = [
        OpcodeChange(opcode.value, old[opcode], new[opcode])
        for opcode in old.keys() | new.keys()
        if old[opcode] != new[opcode]
    ]
    return sorted(changes, key=lambda change: (-abs(change.change), change.opcode))
