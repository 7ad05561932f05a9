"""The times of instructions and asynchronous operations under a model, and where they are from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hloopt.analysis.async_operations import async_form
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import Runs, count_runs
from hloopt.analysis.gpu_async import is_gpu_done, is_gpu_start
from hloopt.analysis.latency import LatencyModel, Origin, Time
from hloopt.analysis.stage import Stage
from hloopt.cost_models import CostModelChoice, cost_model_to_json
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.custom_targets import custom_call_target
from hloopt.reports.stage_notices import cost_notices
from hloopt.reports.units import some

_PARTS_COUNT = (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL)
"""What takes the time of the computations that it runs, whose instructions are counted."""


@dataclass(frozen=True, slots=True)
class TimedRow:
    """An instruction, or an operation from its start to its done; `time` is of one run."""

    instruction: Instruction
    done: Instruction | None
    runs: Runs
    time: Time
    microseconds: float
    """Of all runs."""

    @property
    def kind(self) -> str:
        """What it is, in a word: the opcode; for custom fusions and calls what they are."""
        instruction = self.instruction
        if self.done is not None:
            return async_form(instruction).inner.value
        if instruction.opcode is Opcode.CUSTOM_CALL:
            return custom_call_target(instruction)
        if instruction.opcode is Opcode.FUSION:
            return f"fusion {instruction.attributes.get('kind', '')}".rstrip()
        return instruction.opcode.value


@dataclass(frozen=True, slots=True)
class OriginTotal:
    """What one source of times says."""

    origin: Origin
    count: int
    microseconds: float
    kinds: Counter[str]


@dataclass(slots=True)
class LatencyReport:
    """The times of one run of a module on one device."""

    module: str
    model: CostModelChoice
    """Where times are from."""
    instructions: list[TimedRow]
    """Most time first; without loops, conditionals and calls, whose parts are here."""
    operations: list[TimedRow]
    """The operations that run beside others, most time first."""
    notices: tuple[str, ...]
    """What the figures are of, where that is not one device."""
    notes: list[str]

    @property
    def microseconds(self) -> float:
        """The instructions one after another."""
        return sum(row.microseconds for row in self.instructions)

    def guesses(self) -> list[TimedRow]:
        """What the model does not know the time of."""
        rows = (*self.instructions, *self.operations)
        return [row for row in rows if row.time.origin is Origin.GUESS]


def analyze_latency(
    module: Module, model: LatencyModel, choice: CostModelChoice, notes: Iterable[str] = ()
) -> LatencyReport:
    """The report for a verified module. O(instructions), beside what the model takes."""
    costs = CostAnalysis(module)
    per_microsecond = model.cycles_per_microsecond
    instructions, operations = [], []
    own_notes = list(notes)
    wrapped = _wrapped(module)
    for computation, runs in count_runs(module, costs).items():
        if computation in wrapped or not runs.times:
            continue
        for instruction in computation.instructions:
            if instruction.opcode not in _PARTS_COUNT:
                time = model.node_time(instruction)
                total = time.cycles / per_microsecond * runs.times
                instructions.append(TimedRow(instruction, None, runs, time, total))
            if is_gpu_start(instruction):
                for done in filter(is_gpu_done, instruction.users):
                    time = model.edge_time(instruction, done)
                    total = time.cycles / per_microsecond * runs.times
                    operations.append(TimedRow(instruction, done, runs, time, total))
    for rows in (instructions, operations):
        rows.sort(key=lambda row: -row.microseconds)
    if any(not row.runs.is_known for row in instructions):
        own_notes.append("loops whose trip count is not known take one trip")
    report = LatencyReport(
        *(module.name, choice, instructions, operations),
        *(cost_notices(Stage.of(module)), own_notes),
    )
    if guesses := report.guesses():
        names = [f"%{row.instruction.name}" for row in guesses]
        own_notes.append(f"guessed, for want of anything better: {some(names)}")
    return report


def _wrapped(module: Module) -> set[object]:
    """The computations inside of asynchronous operations, whose time is that of the operation."""
    return {
        callee
        for instruction in module.instructions()
        if instruction.opcode is Opcode.ASYNC_START
        for callee in instruction.called
    }


def by_origin(rows: Iterable[TimedRow]) -> list[OriginTotal]:
    """The rows by where their times are from, most time first, guesses last."""
    groups: dict[Origin, list[TimedRow]] = {}
    for row in rows:
        groups.setdefault(row.time.origin, []).append(row)
    totals = [
        OriginTotal(
            origin,
            len(group),
            sum(row.microseconds for row in group),
            Counter(row.kind for row in group),
        )
        for origin, group in groups.items()
    ]
    return sorted(totals, key=lambda t: (t.origin is Origin.GUESS, -t.microseconds))


def latency_to_json(report: LatencyReport) -> dict[str, Any]:
    """The report as plain data; times in microseconds, of one run and of all."""
    return {
        "module": report.module,
        **cost_model_to_json(report.model),
        "microseconds": report.microseconds,
        "instructions": [_row_to_json(row) for row in report.instructions],
        "operations": [
            {**_row_to_json(row), "done": row.done.name if row.done else None}
            for row in report.operations
        ],
        "guesses": len(report.guesses()),
        "notices": list(report.notices),
        "notes": report.notes,
    }


def _row_to_json(row: TimedRow) -> dict[str, Any]:
    return {
        "name": row.instruction.name,
        "kind": row.kind,
        "computation": row.instruction.parent.name,
        "runs": row.runs.times if row.runs.is_known else None,
        "cycles": row.time.cycles,
        "microseconds": row.microseconds,
        "from": row.time.origin.value,
    }
