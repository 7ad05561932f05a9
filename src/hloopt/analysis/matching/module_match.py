"""The matching of two modules: partners among their computations and instructions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hloopt.analysis.matching.computation_pair import match_instructions
from hloopt.analysis.matching.computations import ComputationChoice
from hloopt.analysis.matching.labels import Labels
from hloopt.analysis.matching.passed import passed_partners
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.ordering import stable_computation_order


@dataclass(slots=True)
class ModuleMatch:
    """Partners among computations and among instructions, from the module before to that after.

    Opcode, shape, attributes, op_name, operands and users decide; names only where all of these
    leave the choice. Instructions with different opcodes are no partners.
    """

    computations: dict[Computation, Computation] = field(default_factory=dict)
    instructions: dict[Instruction, Instruction] = field(default_factory=dict)

    @classmethod
    def of(cls, before: Module, after: Module) -> ModuleMatch:
        """Match two modules; changes neither. O(n log n) in their instructions.

        Callers are matched before their callees, as partners call partners. A computation that
        no pair of callers proposes is chosen by content. In a module and itself, all are partners
        of themselves.
        """
        if before is after:
            computations = before.computations.values()
            return cls(
                {each: each for each in computations},
                {each: each for each in before.instructions()},
            )
        match = cls()
        matcher = _Matcher(match, before, after)
        matcher.pair(before.entry, after.entry)
        callers_first = stable_computation_order(before)[::-1]
        for find in (matcher.choice.called_alike, matcher.choice.alike):
            for old in callers_first:
                if old not in match.computations:
                    new = find(old)
                    if new is not None:
                        matcher.pair(old, new)
        return match


class _Matcher:
    """Fills a ModuleMatch."""

    def __init__(self, match: ModuleMatch, before: Module, after: Module) -> None:
        self.match = match
        self.labels = Labels.of((before, after))
        self.choice = ComputationChoice(before, after, self.labels)

    def pair(self, old: Computation, new: Computation) -> None:
        """Make two computations partners, and match their instructions."""
        self.match.computations[old] = new
        self.choice.take(old, new)
        for a, b in self._partners(old, new):
            self.match.instructions[a] = b
            self.choice.propose(a, b)

    def _partners(
        self, old: Computation, new: Computation
    ) -> Iterable[tuple[Instruction, Instruction]]:
        if same_source_text(old, new):
            return zip(old.instructions, new.instructions, strict=True)
        known = passed_partners(old, new, self.match.instructions)
        return match_instructions(old, new, self.labels, known)


def same_source_text(before: Computation, after: Computation) -> bool:
    """Whether two computations are unchanged since reading and have equal text. O(text)."""
    if not (before.is_pristine and after.is_pristine):
        return False
    old, new = _source_text(before), _source_text(after)
    return old is not None and old == new


def _source_text(computation: Computation) -> str | None:
    source, scope = computation.module.source, computation.source_range
    return source.text[slice(*scope)] if source is not None and scope is not None else None
