"""Details of single instructions: place in the schedule, runs, time, life at the peak."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import Runs, count_runs
from hloopt.analysis.latency.model import LatencyModel, Time
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.query import values


@dataclass(frozen=True, slots=True)
class Details:
    """The facts about one instruction in its module."""

    instruction: Instruction
    bytes: int
    op_name: str
    source: str
    position: int | None
    """In the schedule of its computation, from 0; None where there is none."""
    runs: Runs | None
    """None where it is embedded in another instruction."""
    time: Time | None
    """Of one run; None without a model of time, and where what it calls takes the time."""
    is_alive_at_peak: bool | None
    """None where the memory of the module is not known, and for what is embedded."""


class ModuleDetails:
    """The details of a module's instructions, each found out once it is asked for."""

    def __init__(
        self, module: Module, times: LatencyModel | None, alive: frozenset[str] | None
    ) -> None:
        """`alive` are the names of what is alive at the peak, None where that is not known."""
        self.module = module
        self.times = times
        self._alive = alive
        self._positions: dict[Computation, dict[Instruction, int]] = {}

    def of(self, instruction: Instruction) -> Details:
        """The details of an instruction. O(its computation) once, O(1) then."""
        runs = self._runs.get(instruction.parent)
        return Details(
            instruction,
            values.size(instruction.shape)[0],
            next(iter(values.op_name(instruction)), ""),
            next(iter(values.source(instruction)), ""),
            None if runs is None else self._position(instruction),
            runs,
            self._time(instruction),
            None if runs is None or self._alive is None else instruction.name in self._alive,
        )

    def _time(self, instruction: Instruction) -> Time | None:
        if self.times is None or instruction.opcode in CONTROL_FLOW_CALLERS:
            return None
        return self.times.node_time(instruction)

    def _position(self, instruction: Instruction) -> int | None:
        if not self.module.is_scheduled:
            return None
        positions = self._positions.get(instruction.parent)
        if positions is None:
            order = instruction.parent.instructions
            positions = {step: number for number, step in enumerate(order)}
            self._positions[instruction.parent] = positions
        return positions[instruction]

    @cached_property
    def _runs(self) -> dict[Computation, Runs]:
        return count_runs(self.module, CostAnalysis(self.module))
