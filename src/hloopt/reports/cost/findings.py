"""The cost report: what a module costs on a target, by instruction and by groups of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.memory_rates import unrated_note
from hloopt.analysis.cost.model import Cost
from hloopt.analysis.cost.roofline import Bound, Roofline
from hloopt.analysis.cost.runs import ONCE, RUNNING, Runs, count_runs
from hloopt.analysis.source_lines import Basis
from hloopt.analysis.stage import Stage
from hloopt.diagnostics import counted
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.ir.shapes.shape import format_shape
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.reports.console.units import some
from hloopt.reports.cost.sources import CostSources
from hloopt.reports.sources import source_notes
from hloopt.reports.stage_notices import cost_notices
from hloopt.targets import Target

if TYPE_CHECKING:
    from hloopt.reports.cost.measured import MeasuredTimes

NO_SCOPE = "(no op_name)"


@dataclass(frozen=True, slots=True)
class CostRow:
    """One instruction of a computation that runs; `cost` and `bound` are of one run."""

    name: str
    opcode: str
    computation: str
    shape: str
    op_name: str
    runs: Runs
    cost: Cost
    bound: Bound
    instruction: Instruction

    @property
    def seconds(self) -> float:
        """The least time of all runs."""
        return self.bound.seconds * self.runs.times

    @property
    def bytes_accessed(self) -> int:
        """Of all runs."""
        return self.cost.bytes_accessed * self.runs.times


@dataclass(slots=True)
class CostReport:
    """The cost of one run of a module on one device."""

    module: str
    target: Target | None
    """None: there are no times, which are 0 here."""
    total: Cost
    rows: list[CostRow]
    """The instructions that cost anything, most time first; most bytes first without a target."""
    seconds: float
    """The least time, one instruction after another."""
    compute_seconds: float
    """The part of it in instructions bound by arithmetic; the rest is bound by memory."""
    sources: CostSources
    notices: tuple[str, ...]
    """The subject of the figures, where that is not one device."""
    assumptions: list[str]
    """The assumptions behind the figures, one sentence each."""
    measured: MeasuredTimes | None = None
    """The measured times of a profile or cost table, if one is given."""

    @property
    def measured_seconds(self) -> float:
        """The measured time of all runs of the rows that have one."""
        known = {} if self.measured is None else self.measured.seconds
        return sum(known[row.name] * row.runs.times for row in self.rows if row.name in known)

    @property
    def hardware(self) -> Target:
        """The target, for what is about its rates: only ask where there is one."""
        assert self.target is not None
        return self.target


_NO_BOUND = Bound(0.0, 0.0)


def analyze_cost(
    module: Module, target: Target | None, measured: MeasuredTimes | None = None
) -> CostReport:
    """The report for a verified module. O(instructions)."""
    costs = CostAnalysis(module)
    roofline = None if target is None else Roofline(costs, target)
    rows = []
    runs_of = count_runs(module, costs)
    for computation, runs in runs_of.items():
        for instruction in computation.instructions:
            if instruction.opcode in RUNNING or not runs.times:
                continue
            cost = costs.of(instruction)
            if cost.bytes_accessed or cost.flops or cost.transcendentals:
                bound = _NO_BOUND if roofline is None else roofline.of(instruction)
                rows.append(_row(instruction, runs, cost, bound))
    rows.sort(key=lambda row: (-row.seconds, 0 if target else -row.bytes_accessed))
    return CostReport(
        module.name,
        target,
        costs.module(),
        rows,
        sum(row.seconds for row in rows),
        sum(row.seconds for row in rows if row.bound.is_compute),
        CostSources(module, costs, runs_of),
        cost_notices(Stage.of(module)),
        _assumptions(module, roofline, costs) + _measured_notes(rows, measured),
        measured,
    )


def _measured_notes(rows: list[CostRow], measured: MeasuredTimes | None) -> list[str]:
    if measured is None:
        return []
    known = [row for row in rows if row.name in measured.seconds]
    total = counted(len(rows), "instruction")
    notes = [f"{measured.source} has times of {len(known):,} of {total}"]
    fast = [row for row in known if measured.seconds[row.name] < row.bound.seconds]
    if fast:
        notes.append(
            "these take less than the least time on the target, so times, module or target do not "
            "belong together: " + some([f"%{row.name}" for row in fast])
        )
    return notes


def _row(instruction: Instruction, runs: Runs, cost: Cost, bound: Bound) -> CostRow:
    return CostRow(
        instruction.name,
        instruction.opcode.value,
        instruction.parent.name,
        format_shape(instruction.shape, layout=False),
        op_name_of(instruction),
        *(runs, cost, bound, instruction),
    )


def _assumptions(module: Module, roofline: Roofline | None, costs: CostAnalysis) -> list[str]:
    notes = [_NO_TARGET] if roofline is None else _assumptions_on_time(module, roofline)
    if costs.unknown_loops:
        notes.append(
            "loops whose trip count is not known take one trip: "
            + some([f"%{loop.name}" for loop in costs.unknown_loops])
        )
    if costs.unknown_calls:
        targets = Counter(map(custom_call_target, costs.unknown_calls))
        notes.append(
            "no flops are known of these custom calls, which read their operands and write their "
            "results: " + some([f"{count} x {name}" for name, count in targets.most_common()])
        )
    opcodes = {instruction.opcode for instruction in module.instructions()}
    if Opcode.CONDITIONAL in opcodes:
        notes.append("of a conditional, the branch that moves most bytes runs")
    if opcodes & COLLECTIVES:
        notes.append(
            "collectives count what they read and write in device memory, asynchronous ones where "
            "they start and where they are done; the network takes no time"
        )
    return notes


_NO_TARGET = "no target: no times; --target NAME gives the least time (hloopt targets)"


def _assumptions_on_time(module: Module, roofline: Roofline) -> list[str]:
    notes = [
        "the least time is at peak rates, one instruction after another; a transcendental takes "
        "the time of a flop"
    ]
    if not roofline.target.vector:
        notes.append(
            "no rate of the target's vector units is published: only dot products and "
            "convolutions take time to compute"
        )
    if roofline.without_rate:
        notes.append(
            "the target has no rate for these types, whose arithmetic takes no time: "
            + some(list(roofline.without_rate))
        )
    if (unrated := unrated_note(module, roofline.target)) is not None:
        notes.append(unrated)
    return notes


# -- groups -----------------------------------------------------------------------------------


@dataclass(slots=True)
class CostGroup:
    """Instructions with something in common, over all their runs."""

    label: str
    instructions: int = 0
    runs: Runs = ONCE
    """The most runs of one of them."""
    least_runs: int = 0
    flops: int = 0
    transcendentals: int = 0
    bytes_accessed: int = 0
    unfused_bytes: int = 0
    seconds: float = 0.0
    compute_seconds: float = 0.0

    def add(self, row: CostRow, count: int) -> None:
        """Count so many runs of the row's instruction."""
        seconds = row.bound.seconds * count
        self.least_runs = min(self.least_runs, count) if self.instructions else count
        self.instructions += 1
        self.runs = Runs(max(self.runs.times, count), self.runs.is_known and row.runs.is_known)
        self.flops += row.cost.flops * count
        self.transcendentals += row.cost.transcendentals * count
        self.bytes_accessed += row.cost.bytes_accessed * count
        self.unfused_bytes += row.cost.unfused_bytes * count
        self.seconds += seconds
        if row.bound.is_compute:
            self.compute_seconds += seconds


GROUPINGS = ("instruction", "computation", "scope", "source", "opcode")


def grouped(report: CostReport, by: str, *, depth: int = 3) -> list[CostGroup]:
    """The rows in groups, most time first. `depth` is that of a scope: how much of op_name.

    By `source` an instruction of a function that several lines call counts at each of them.
    """
    groups: dict[str, CostGroup] = {}
    for row in report.rows:
        for label, count in _labels(report, row, by, depth):
            group = groups.get(label)
            if group is None:
                group = groups[label] = CostGroup(label)
            group.add(row, count)
    return sorted(groups.values(), key=lambda group: (-group.seconds, -group.bytes_accessed))


def _labels(report: CostReport, row: CostRow, by: str, depth: int) -> Iterable[tuple[str, int]]:
    """The groups a row belongs to, with its runs in each."""
    match by:
        case "source":
            return report.sources.labels(row.instruction)
        case "instruction":
            label = row.name
        case "computation":
            label = row.computation
        case "opcode":
            label = row.opcode
        case _:
            label = "/".join(row.op_name.split("/")[:depth]) or NO_SCOPE
    return ((label, row.runs.times),)


def source_notes_of(report: CostReport) -> list[str]:
    """The basis of the lines that instructions are grouped by."""
    amounts: Counter[Basis] = Counter()
    for row in report.rows:
        for line, runs in report.sources.of(row.instruction).items():
            amounts[line.basis] += row.cost.bytes_accessed * runs
    return source_notes(amounts, "bytes")
