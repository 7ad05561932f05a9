"""The time of moves between memory spaces, and how much of it the schedule hides."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.cost_models import CostModelChoice
from hloopt.ir import Instruction, Module
from hloopt.memory.traffic import asynchronous_move
from hloopt.reports.schedule.run import ScheduleSettings, cycle_unit, run_module


@dataclass(frozen=True, slots=True)
class MoveTimes:
    """The asynchronous moves to and from a memory space in one run of the module."""

    moves: int
    seconds: float
    """From start to done, where nothing slows them down."""
    exposed_seconds: float
    """The part of it in which nothing else runs."""

    @property
    def hidden_share(self) -> float:
        """The part that other work hides, from 0 to 1."""
        return 1 - self.exposed_seconds / self.seconds if self.seconds else 0.0


def move_times(module: Module, cost_model: CostModelChoice, space: int) -> MoveTimes | None:
    """Run a schedule, and sum up the moves to and from a memory space.

    None without a schedule, without a move, and where the model knows no times. Loops of unknown
    trip counts take one trip. Near-linear in the module.
    """
    if not module.is_scheduled:
        return None
    settings = ScheduleSettings(cost_model=cost_model)
    simulation = run_module(module, settings, settings.config_for(module))
    unit = cycle_unit(simulation.model).seconds
    if unit is None:
        return None
    moves, total, exposed = 0, 0.0, 0.0
    for run, operation in simulation.operations():
        if _touches(operation.start, space):
            moves += run.runs
            total += operation.latency * run.runs
            exposed += operation.exposed * run.runs
    return MoveTimes(moves, total * unit, exposed * unit) if moves else None


def _touches(start: Instruction, space: int) -> bool:
    move = asynchronous_move(start)
    return move is not None and space in (move.source, move.destination)
