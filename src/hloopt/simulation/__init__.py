"""Running a schedule under a model of time: how long it takes, and what waits for what.

    streams = Streams.of(ResourceTracker(config))
    result = simulate(module, model, streams)
    result.makespan, result.exposed_by_kind(), result.entry.operations[0].exposed

`docs/schedule.md` says what the figures mean.
"""

from hloopt.simulation.execution import ComputationRun, Loops, Simulation, simulate
from hloopt.simulation.operations import Operation, Stream
from hloopt.simulation.streams import Streams

__all__ = ["ComputationRun", "Loops", "Operation", "Simulation", "Stream", "Streams", "simulate"]
