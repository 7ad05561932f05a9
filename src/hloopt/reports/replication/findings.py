"""The replication report: what is the same on all devices, and what that costs them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from hloopt.analysis.replication import ALL, Agreement, Axis, ReplicationAnalysis
from hloopt.analysis.replication.redundancy import RedundantWork, find_redundancy
from hloopt.analysis.source_lines import SourceLines
from hloopt.diagnostics import counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.shapes.shape import format_shape
from hloopt.ir.sources.source_stacks import op_name_of

_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class RedundantGroup:
    """Instructions alike but for the numbers in their origins, over all their runs."""

    origin: str
    """Their op_name, or the name of one; numbers that differ are `*`."""
    opcode: str
    shape: str
    agreement: Agreement
    names: list[str] = field(default_factory=list)
    lines: dict[str, None] = field(default_factory=dict)
    """The lines of the program they are from, each once."""
    flops: int = 0
    bytes_accessed: int = 0
    runs: int = 0
    """The most runs of one of them."""
    runs_known: bool = True

    def add(self, work: RedundantWork, origin: str, line: str) -> None:
        if origin != self.origin:
            self.origin = _NUMBER.sub("*", origin)
        self.names.append(work.instruction.name)
        if line:
            self.lines[line] = None
        self.flops += work.flops
        self.bytes_accessed += work.bytes_accessed
        self.runs = max(self.runs, work.runs.times)
        self.runs_known = self.runs_known and work.runs.is_known


@dataclass(slots=True)
class Amounts:
    """Instructions, and flops and bytes of one device."""

    instructions: int = 0
    flops: int = 0
    bytes_accessed: int = 0


@dataclass(slots=True)
class ReplicationReport:
    """The instructions on which the devices along one axis agree."""

    module: Module
    analysis: ReplicationAnalysis
    total: Amounts
    on_all: Amounts
    """The replicated instructions of a module, and the redundant part of its costs."""
    in_sets: Amounts
    """The same for what only sets of devices have in common."""
    groups: list[RedundantGroup]
    """Redundant work, that with the largest share of flops or bytes first."""
    notes: list[str]
    """The assumptions behind the figures, one sentence each."""

    @property
    def axis(self) -> Axis:
        return self.analysis.axis

    def share(self, *groups: RedundantGroup) -> float:
        """The part of all flops that groups have, or of all bytes, if that is more."""
        return max(
            sum(group.flops for group in groups) / max(self.total.flops, 1),
            sum(group.bytes_accessed for group in groups) / max(self.total.bytes_accessed, 1),
        )


def report_replication(module: Module, analysis: ReplicationAnalysis) -> ReplicationReport:
    """The report for a verified module along the axis of `analysis`. O(instructions)."""
    redundancy = find_redundancy(module, analysis)
    total, on_all, in_sets, unseen = Amounts(), Amounts(), Amounts(), 0
    total.flops = redundancy.total.flops
    total.bytes_accessed = redundancy.total.bytes_accessed
    for instruction in module.instructions():
        total.instructions += 1
        if analysis.agreements(instruction) is None:
            unseen += 1
            continue
        agreement = analysis.agreement(instruction)
        if agreement is ALL:
            on_all.instructions += 1
        elif agreement.sets:
            in_sets.instructions += 1
    for work in redundancy.work:
        amounts = on_all if work.agreement is ALL else in_sets
        amounts.flops += work.flops
        amounts.bytes_accessed += work.bytes_accessed
    report = ReplicationReport(
        *(module, analysis, total, on_all, in_sets),
        _grouped(redundancy.work, SourceLines(module)),
        list(_notes(module, unseen, redundancy.unknown_loops)),
    )
    report.groups.sort(key=report.share, reverse=True)
    return report


def _grouped(found: list[RedundantWork], lines: SourceLines) -> list[RedundantGroup]:
    groups: dict[tuple[object, ...], RedundantGroup] = {}
    for work in found:
        instruction = work.instruction
        origin = _origin(instruction)
        opcode, shape = instruction.opcode, format_shape(instruction.shape, layout=False)
        key = (_NUMBER.sub("*", origin), opcode, shape, work.agreement)
        group = groups.get(key)
        if group is None:
            group = groups[key] = RedundantGroup(origin, opcode.value, shape, work.agreement)
        group.add(work, origin, lines.of(instruction).label)
    return list(groups.values())


def _origin(instruction: Instruction) -> str:
    return op_name_of(instruction) or f"%{instruction.name}"


def _notes(module: Module, unseen: int, unknown_loops: list[Instruction]) -> Iterator[str]:
    if unseen:
        yield (
            f"{counted(unseen, 'instruction is', 'instructions are')} in reducers, comparators "
            "and asynchronous computations, "
            "which the analysis does not look into"
        )
    unknown = Counter(i.opcode for i in module.instructions() if i.opcode.value in _OPAQUE)
    if unknown:
        names = ", ".join(f"{count:,} x {opcode}" for opcode, count in unknown.most_common())
        yield f"nothing is known of the results of {names}, whatever their operands"
    if unknown_loops:
        shown = ", ".join(f"%{loop.name}" for loop in unknown_loops[:3])
        more = f" and {len(unknown_loops) - 3} more" if len(unknown_loops) > 3 else ""
        yield f"loops whose trip count is not known take one trip: {shown}{more}"


_OPAQUE = frozenset(("custom-call", "async-start", "all-reduce-start", "all-gather-start"))


# -- single instructions ------------------------------------------------------------------------


def agreement_text(agreement: Agreement) -> str:
    """`all`, `none`, or sets of devices: `{0,4} {1,5}`."""
    if agreement is ALL:
        return "all"
    sets = agreement.sets
    return " ".join(f"{{{','.join(map(str, devices))}}}" for devices in sets) or "none"


def leaf_agreements(
    analysis: ReplicationAnalysis, instruction: Instruction
) -> list[tuple[tuple[int, ...], Agreement]]:
    """Each leaf of an instruction by its shape index; none where the analysis does not look."""
    found = analysis.agreements(instruction)
    if found is None:
        return []
    indices = [index for index, shape in instruction.shape.subshapes() if not shape.is_tuple]
    return list(zip(indices, found, strict=True))
