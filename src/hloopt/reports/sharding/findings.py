"""Explained collectives by the line of the program that made them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hloopt.diagnostics import counted
from hloopt.reports.sources import NO_SOURCE
from hloopt.sharding.explain import Confidence, Explanation


@dataclass(slots=True)
class LineGroup:
    """The collectives that one line of the program made."""

    label: str
    explanations: list[Explanation] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Bytes that a device sends in all runs."""
        return sum(e.bytes for e in self.explanations)

    @property
    def counts(self) -> Counter[str]:
        """Collectives by kind, each in the text counted once."""
        return Counter(e.collective.kind.value for e in self.explanations)

    @property
    def summary(self) -> str:
        """`12 all-gathers, 1 all-to-all`."""
        return ", ".join(counted(n, kind) for kind, n in self.counts.most_common())


@dataclass(slots=True)
class ExplainReport:
    """The explained collectives of a module, the costliest line and collective first."""

    module: str
    partitions: int
    mesh: str
    """The mesh whose axes have names; empty where none is known."""
    groups: list[LineGroup]
    notes: list[str]

    @property
    def explanations(self) -> list[Explanation]:
        return [e for group in self.groups for e in group.explanations]

    @property
    def bytes(self) -> int:
        return sum(group.bytes for group in self.groups)

    def count(self, confidence: Confidence) -> int:
        """The number of collectives explained with a confidence."""
        return sum(e.confidence is confidence for e in self.explanations)


def report_explanations(
    module: str, partitions: int, mesh: str, explanations: list[Explanation]
) -> ExplainReport:
    """Group explained collectives by source line. O(collectives · log)."""
    groups: dict[str, LineGroup] = {}
    for explanation in explanations:
        label = (explanation.line and explanation.line.label) or NO_SOURCE
        groups.setdefault(label, LineGroup(label)).explanations.append(explanation)
    ordered = sorted(groups.values(), key=lambda group: -group.bytes)
    return ExplainReport(module, partitions, mesh, ordered, _notes(explanations, mesh))


def _notes(explanations: list[Explanation], mesh: str) -> list[str]:
    notes = []
    ambiguous = [e for e in explanations if e.confidence is Confidence.AMBIGUOUS]
    if ambiguous:
        notes.append(
            f"{counted(len(ambiguous), 'collective is', 'collectives are')} ambiguous: the texts "
            "leave several instructions, the likeliest first"
        )
    unknown = sum(not e.runs.is_known for e in explanations)
    if unknown:
        notes.append(
            f"{counted(unknown, 'collective is', 'collectives are')} in loops whose trip count is "
            "not known, which are taken as one trip"
        )
    if explanations and not mesh:
        notes.append("no mesh is named in the texts: --mesh dp=2,tp=4 names its axes")
    return notes
