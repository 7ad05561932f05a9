"""The assumptions behind figures of a run of a schedule."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from hloopt.analysis.async_operations import SYNC_COLLECTIVES
from hloopt.analysis.latency import Origin
from hloopt.cost_models import model_notes
from hloopt.diagnostics import counted
from hloopt.ir import Instruction
from hloopt.ir.opcode import STARTS
from hloopt.reports.console.units import human_share, some
from hloopt.reports.schedule.run import ScheduleSettings, guessed_share
from hloopt.simulation import Simulation
from hloopt.simulation.table_times import TableTimes


def notes_on(simulation: Simulation, settings: ScheduleSettings) -> list[str]:
    """The assumptions behind the figures of a run, one sentence each. O(instructions that run)."""
    choice = settings.cost_model
    notes = model_notes(choice, simulation.module)
    file = choice.cost_table or choice.profile
    if file is not None and not _any_from_file(simulation):
        notes.append(f"{file} knows no instruction that runs here: is it about another module?")
    if (share := guessed_share(simulation)) is not None:
        guessed = dict.fromkeys(simulation.guessed)
        reason = f", for the model does not know how long these take: {_names(guessed)}"
        notes.append(f"{human_share(share)} of the time is guessed{reason if guessed else ''}")
    if unknown := dict.fromkeys(simulation.unknown):
        notes.append(
            "nothing is known of how long these take, they count as nothing: "
            f"{_names(unknown)}; with --target NAME they are guessed"
        )
    if (times := TableTimes.of(simulation)) is not None:
        notes.append(_table_note(times, is_smooth=choice.smooth_tables))
    if simulation.unknown_loops:
        notes.append(
            "loops whose trip count is not known take one trip: " + _names(simulation.unknown_loops)
        )
    if settings.loops == "once":
        notes.append("loops take one trip")
    unpaired = [instruction for run in simulation.runs.values() for instruction in run.unpaired]
    if unpaired:
        notes.append(
            "nothing is said of operations that start in one trip or computation and are done in "
            f"another: {_names(unpaired)}"
        )
    if in_main := _in_main_stream(simulation):
        notes.append(
            f"these are not asynchronous here, and hold up the main stream: {_names(in_main)}"
        )
    if settings.shared_bandwidth is not None:
        notes.append(
            "what runs at the same time shares the memory bandwidth of "
            f"{settings.shared_bandwidth.title}"
        )
    return notes


def _table_note(times: TableTimes, *, is_smooth: bool) -> str:
    """The sentence on what smoothing does to measured times, or would do."""
    what = f"{counted(times.count, 'time is', 'times are')} from tables of measurements"
    if is_smooth:
        what += ", made monotone in size"
    if times.largest is None or times.times is None:
        return f"{what}; {'raw' if is_smooth else 'smoothed'} ones would be the same"
    measured, smoothed = (f"{time:.4g} us" for time in times.times)
    largest = f"most %{times.largest.name}, {measured} raw and {smoothed} smoothed"
    if is_smooth:
        return f"{what}; {times.differing} of them differ from the raw ones, {largest}"
    return (
        f"{what}, in which less may take longer; {times.differing} of them would differ with "
        f"--smooth-tables, {largest}"
    )


def _any_from_file(simulation: Simulation) -> bool:
    """Whether any time is that of a table or profile. Linear in what runs if none is."""
    model = simulation.model
    nodes = (model.node_time(i) for run in simulation.runs.values() for i in run.order)
    pairs = (model.edge_time(o.start, o.done) for _, o in simulation.operations())
    return any(time.origin in (Origin.TABLE, Origin.PROFILE) for time in chain(nodes, pairs))


def _in_main_stream(simulation: Simulation) -> list[Instruction]:
    """Collectives and starts that run in the main stream like other work."""
    beside = {operation.start for _, operation in simulation.operations()}
    for run in simulation.runs.values():
        beside.update(run.unpaired)
    return [
        instruction
        for run in simulation.runs.values()
        if run.runs
        for instruction in run.order
        if (instruction.opcode in SYNC_COLLECTIVES or instruction.opcode in STARTS)
        and instruction not in beside
    ]


def _names(instructions: Iterable[Instruction]) -> str:
    return some([f"%{instruction.name}" for instruction in instructions])
