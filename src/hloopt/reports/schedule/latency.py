"""The times of instructions and asynchronous operations in a run, and where they are from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hloopt.analysis.async_operations import async_form
from hloopt.analysis.cost.runs import Runs
from hloopt.analysis.latency import Origin, Time
from hloopt.collector import collector_paused
from hloopt.cost_models import CostModelChoice
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.custom_targets import custom_call_target
from hloopt.reports.console.units import CycleUnit
from hloopt.reports.prepared import PreparedModule
from hloopt.reports.schedule.notes import notes_on
from hloopt.reports.schedule.run import (
    Preset,
    ScheduleSettings,
    cycle_unit,
    guessed_share,
    run_module,
)
from hloopt.simulation import ComputationRun
from hloopt.simulation.table_times import TableTimes


@dataclass(frozen=True, slots=True)
class TimedRow:
    """An instruction, or an operation from its start to its done; `time` is of one run."""

    instruction: Instruction
    done: Instruction | None
    """None for what is in the main stream: also for an operation that it waits for at once."""
    runs: Runs
    time: Time

    @property
    def total(self) -> float:
        """The cycles of all runs."""
        return self.time.cycles * self.runs.times

    @property
    def kind(self) -> str:
        """Its kind in a word: the opcode; for custom fusions and calls what they are."""
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
    """The times of one source."""

    origin: Origin
    count: int
    cycles: float
    kinds: Counter[str]


@dataclass(slots=True)
class LatencyReport:
    """The times of one run of a module on one device: those of `hloopt schedule`."""

    module: str
    model: CostModelChoice
    """The origin of times."""
    preset: Preset
    """The preset whose streams say what runs beside the rest."""
    unit: CycleUnit
    instructions: list[TimedRow]
    """The work of the main stream and what it waits for at once, most time first; of loops,
    conditionals and calls the parts."""
    operations: list[TimedRow]
    """The operations that run beside others, most time first."""
    notices: tuple[str, ...]
    """The subject of the figures, where that is not one device."""
    notes: list[str]
    guessed_share: float | None
    """The part of the time that is guessed; None where there are no times."""
    table_times: TableTimes | None
    """The difference that smoothing makes; None where no time is from a table of measurements."""

    @property
    def total(self) -> float:
        """The cycles of the instructions one after another."""
        return sum(row.total for row in self.instructions)

    def guesses(self) -> list[TimedRow]:
        """The instructions whose time the model does not know."""
        rows = (*self.instructions, *self.operations)
        return [row for row in rows if row.time.origin in (Origin.GUESS, Origin.UNKNOWN)]


def analyze_latency(module: Module, settings: ScheduleSettings) -> LatencyReport:
    """The report for a verified module: the parts of its run by `settings`.

    One without a schedule is flattened and gets the copies that XLA inserts, as in `hloopt
    schedule`. Near-linear. Raises HloError for a bad choice of a model, or a module that makes no
    sense.
    """
    with collector_paused():
        fuses = settings.cost_model.estimates_fusion
        prepared = PreparedModule.of(module, estimates_fusion=fuses)
        module = prepared.module
        config = settings.config_for(module)
        simulation = run_module(module, settings, config)
        instructions: list[TimedRow] = []
        operations: list[TimedRow] = []
        for run in simulation.runs.values():
            if run.runs:
                instructions += _instructions(run)
                operations += _operations(run)
        for rows in (instructions, operations):
            rows.sort(key=lambda row: -row.total)
        return LatencyReport(
            module.name,
            settings.cost_model,
            config.preset,
            cycle_unit(simulation.model),
            instructions,
            operations,
            prepared.notices,
            notes_on(simulation, settings),
            guessed_share(simulation),
            TableTimes.of(simulation),
        )


def _instructions(run: ComputationRun) -> Iterator[TimedRow]:
    runs = Runs(run.runs, run.runs_known)
    waited = {
        operation.start: operation for operation in run.operations if operation.is_synchronous
    }
    for instruction, work, origin in zip(run.order, run.work, run.origins, strict=True):
        operation = waited.get(instruction)
        if operation is not None:
            yield TimedRow(instruction, None, runs, Time(operation.latency, operation.origin))
        elif origin is not None:
            yield TimedRow(instruction, None, runs, Time(work, origin))


def _operations(run: ComputationRun) -> Iterator[TimedRow]:
    runs = Runs(run.runs, run.runs_known)
    for operation in run.operations:
        if not operation.is_synchronous:
            time = Time(operation.latency, operation.origin)
            yield TimedRow(operation.start, operation.done, runs, time)


def by_origin(rows: Iterable[TimedRow]) -> list[OriginTotal]:
    """The rows by where their times are from, most time first, guesses last."""
    groups: dict[Origin, list[TimedRow]] = {}
    for row in rows:
        groups.setdefault(row.time.origin, []).append(row)
    totals = [
        OriginTotal(
            origin,
            len(group),
            sum(row.total for row in group),
            Counter(row.kind for row in group),
        )
        for origin, group in groups.items()
    ]
    return sorted(totals, key=lambda t: (t.origin is Origin.GUESS, -t.cycles))
