"""Orders of buffers by what they gain in alternate memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from hloopt.ir import Module
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.hints import ValueName
from hloopt.memory_space.allocation.order import name_of
from hloopt.memory_space.costs.runtime import RuntimeSimulator
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import TRIVIAL, Program
from hloopt.passes.memory_space.times import CALLERS, simulator_of


@dataclass(frozen=True, slots=True)
class Worth:
    """The gain of a buffer in alternate memory, and its size in bytes and time."""

    seconds: float
    """The time saved over all runs if it is in alternate memory."""
    bytes: int
    steps: int
    """The length of its live range."""


Value = Callable[[Worth], float]


def per_step(worth: Worth) -> float:
    return worth.seconds / worth.steps


def per_root_of_area(worth: Worth) -> float:
    return worth.seconds / sqrt(worth.bytes * worth.steps)


def per_area(worth: Worth) -> float:
    return worth.seconds / (worth.bytes * worth.steps)


def worths(module: Module, options: MemorySpaceOptions) -> dict[ValueName, Worth]:
    """The worth of each buffer by its first value. O(uses)."""
    program = Program.of(module)
    simulator = simulator_of(module, program.schedule, options)
    ranges = program.ranges
    found = {}
    for buffer in program.buffers.all:
        start = min(ranges.start[value] for value in buffer.values)
        end = max(ranges.end[value] for value in buffer.values)
        seconds = _gain(program, simulator, buffer)
        found[name_of(program, buffer)] = Worth(
            seconds, max(buffer.size, 1), max(end - start, 0) + 1
        )
    return found


def _gain(program: Program, simulator: RuntimeSimulator, buffer: Buffer) -> float:
    flow, costs, gained = program.flow, simulator.costs, 0.0
    for value in buffer.values:
        definer = flow.definer[value]
        if program.has(definer) and definer.opcode not in CALLERS:
            inside = costs.elapsed_seconds(definer, (), (flow.index(value),))
            saved = costs.elapsed_seconds(definer) - inside
            gained += max(0.0, saved) * simulator.runs_of(definer.parent)
        for use in flow.uses(value):
            user = use.user
            if program.has(user) and user.opcode not in (*CALLERS, *TRIVIAL):
                saved = costs.gain(program.place_of(use))
                gained += max(0.0, saved) * simulator.runs_of(user.parent)
    return gained


def ranked(found: dict[ValueName, Worth], value: Value) -> dict[ValueName, int]:
    """Ranks below 0 by falling value. O(n log n)."""
    order = sorted(found, key=lambda name: (-value(found[name]), name))
    return {name: number - len(order) for number, name in enumerate(order)}
