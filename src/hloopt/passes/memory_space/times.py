"""Times that a scheduled module runs for by the cost model of the options."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Module, Opcode
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.costs.runtime import RuntimeSimulator
from hloopt.memory_space.options.options import MemorySpaceOptions

CALLERS = (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL)
"""Opcodes whose work is that of the steps they call."""


@dataclass(frozen=True, slots=True)
class RunTimes:
    """The run time of a module, in seconds."""

    seconds: float
    waits: float
    """The part of it that waits for copies between the memories."""


def run_times(module: Module, options: MemorySpaceOptions) -> RunTimes:
    """The time that a scheduled module runs for by the cost model. O(operands)."""
    simulator = simulator_of(module, FlatSchedule.of(module), options)
    seconds = waits = 0.0
    for step in simulator.steps():
        took = simulator.step(step) * simulator.runs_of(step.parent)
        seconds += took
        if step.opcode in (Opcode.COPY_DONE, Opcode.ASYNC_DONE):
            waits += took
    return RunTimes(seconds, waits)


def simulator_of(
    module: Module, schedule: FlatSchedule, options: MemorySpaceOptions
) -> RuntimeSimulator:
    """A run of a module by the cost model of the options; calls take the time of their steps."""
    assert options.cost_model is not None
    costs = MemorySpaceCosts(module, options.cost_model)
    return RuntimeSimulator(costs, schedule, options.alternate_memory_space, CALLERS)
