"""One assignment on a copy of a module, and the time that the cost model says it runs for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.clone import clone_module
from hloopt.memory_space.allocation.hints import Hints, UseName, ValueName
from hloopt.memory_space.allocation.order import name_of
from hloopt.memory_space.allocation.planning import Plan, plan_memory_spaces
from hloopt.memory_space.costs.runtime import RuntimeSimulator
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.passes.memory_space.assignment import apply_plan
from hloopt.passes.memory_space.times import simulator_of


@dataclass(frozen=True, slots=True)
class Read:
    """A use that a prefetch serves."""

    use: UseName
    wait: float
    """Seconds that the program waits for the prefetch, over all runs."""
    gain: float
    """Seconds that the user is shorter for it."""


@dataclass(slots=True)
class Trial:
    """The outcome of one assignment."""

    options: MemorySpaceOptions
    hints: Hints
    seconds: float
    """The run time of the program by the cost model."""
    reads: list[Read]
    outside: dict[ValueName, float]
    """Buffers of which a use reads default memory, and what alternate memory would gain, once."""


def try_assignment(module: Module, options: MemorySpaceOptions, hints: Hints) -> Trial:
    """Assign a copy of a module and ask the cost model. Near-linear, as the pass."""
    copy, _ = clone_module(module)
    plan = plan_memory_spaces(copy, options, hints)
    outside = dict(_outside(plan))
    apply_plan(copy, plan, options)
    simulator = simulator_of(copy, FlatSchedule.of(copy), options)
    seconds = 0.0
    reads: list[Read] = []
    for step in simulator.steps():
        took = simulator.step(step) * simulator.runs_of(step.parent)
        seconds += took
        if step.opcode is Opcode.COPY_DONE:
            reads += _reads(simulator, step, took)
    return Trial(options, hints, seconds, reads, outside)


def _reads(simulator: RuntimeSimulator, done: Instruction, wait: float) -> Iterator[Read]:
    """The uses of a prefetch, which share its wait."""
    if not simulator.is_alternate(done.shape):
        return
    users = [user for user in done.users if user.opcode is not Opcode.TUPLE]
    for user in users:
        gain = simulator.gain(user, done) * simulator.runs_of(user.parent)
        for number, operand in enumerate(user.operands):
            if operand is done:
                yield Read((user.name, number, 0), wait / len(users), gain)


def _outside(plan: Plan) -> Iterator[tuple[ValueName, float]]:
    flow, costs = plan.program.flow, plan.costs
    assert costs is not None
    for buffer, reason in plan.outside.items():
        if not reason:
            continue
        uses = (use for value in buffer.values for use in flow.uses(value))
        gain = sum(max(0.0, costs.use_benefit(plan.program.place_of(use))) for use in uses)
        if gain > 0:
            yield name_of(plan.program, buffer), gain
