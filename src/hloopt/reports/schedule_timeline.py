"""A run of a module on one axis of time: slices of the main stream and of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hloopt.ir import Computation, Instruction
from hloopt.reports.schedule_findings import ScheduleFindings
from hloopt.simulation import ComputationRun, Operation

MAIN = "main"


class Slice(NamedTuple):
    """Something that takes time. Times are cycles since the module began."""

    instruction: Instruction
    """What runs; of an operation its start; of waiting the done."""
    lane: int
    begin: float
    end: float
    operation: Operation | None = None
    """What runs beside the main stream, or what that waits for."""
    is_wait: bool = False


@dataclass(slots=True)
class Timeline:
    """A run of a module. A computation is laid out once, where it is called first: of a loop the
    first trip, within the time of all of them."""

    lanes: list[str]
    """Names: of the main stream, a lane per depth of calls, then of streams, a lane per operation
    that one has under way at the same time."""
    slices: list[Slice]
    """By begin within each lane."""
    memory: list[tuple[float, int]]
    """Bytes in use from a time on, arguments included, where that changes."""
    spans: dict[Computation, tuple[float, float]]
    """From when to when a computation is laid out."""

    @classmethod
    def of(cls, findings: ScheduleFindings) -> Timeline:
        """Linear in the instructions that run, but for sorting."""
        layout = _Layout(findings)
        layout.place_all()
        return layout.timeline()


class _Placed(NamedTuple):
    run: ComputationRun
    begin: float
    depth: int


@dataclass(slots=True)
class _Layout:
    findings: ScheduleFindings
    placed: dict[Computation, _Placed] = field(default_factory=dict)
    points: list[tuple[float, int]] = field(default_factory=list)

    def place_all(self) -> None:
        """Walk the computations from the entry on, each at its first call."""
        simulation = self.findings.simulation
        self._place(simulation.entry, 0.0, 0)
        stack = [self._steps(simulation.entry)]
        while stack:
            callee = next(stack[-1], None)
            if callee is None:
                stack.pop()
                continue
            stack.append(self._steps(callee))

    def _place(self, run: ComputationRun, begin: float, depth: int) -> None:
        self.placed[run.computation] = _Placed(run, begin, depth)

    def _steps(self, run: ComputationRun) -> Iterator[ComputationRun]:
        """Note the memory at every instruction; the callees not yet placed, at their calls."""
        _, offset, depth = self.placed[run.computation]
        usage = self.findings.memory.usage[run.computation]
        arguments = self.findings.memory.arguments
        enters = self.findings.simulation.loops != "cost"
        for position, instruction in enumerate(run.order):
            begin = offset + run.begin[position]
            self.points.append((begin, arguments + usage[position]))
            if not enters:
                continue
            for callee, times in run.calls.get(instruction, ()):
                if times and callee not in self.placed:
                    inner = self.findings.simulation.runs[callee]
                    self._place(inner, begin, depth + 1)
                    begin += inner.duration
                    yield inner

    def timeline(self) -> Timeline:
        """What was placed, in lanes."""
        depth = 1 + max(placed.depth for placed in self.placed.values())
        lanes = [MAIN if level == 0 else f"{MAIN} {level}" for level in range(depth)]
        slices = [slice for placed in self.placed.values() for slice in _main_slices(placed)]
        beside = sorted(
            (
                (operation.stream.name, placed.begin + operation.begin, operation, placed)
                for placed in self.placed.values()
                for operation in placed.run.operations
            ),
            key=lambda entry: entry[:2],
        )
        free_from: dict[str, list[tuple[float, int]]] = {}
        for name, begin, operation, placed in beside:
            end = placed.begin + operation.finish
            rows = free_from.setdefault(name, [])
            row = next((n for n, (time, _) in enumerate(rows) if time <= begin), None)
            if row is None:
                row = len(rows)
                rows.append((end, len(lanes)))
                lanes.append(name if row == 0 else f"{name} {row + 1}")
            rows[row] = (end, rows[row][1])
            slices.append(Slice(operation.start, rows[row][1], begin, end, operation))
        slices.sort(key=lambda slice: (slice.lane, slice.begin, -slice.end))
        spans = {
            computation: (placed.begin, placed.begin + placed.run.duration)
            for computation, placed in self.placed.items()
        }
        return Timeline(lanes, slices, _changes(self.points), spans)


def _main_slices(placed: _Placed) -> Iterator[Slice]:
    run, offset, depth = placed
    for instruction, begin, end in zip(run.order, run.begin, run.end, strict=True):
        if end > begin:
            yield Slice(instruction, depth, offset + begin, offset + end)
    for operation in run.operations:
        if operation.exposed > 0:
            begin, end = offset + operation.needed, offset + operation.finish
            yield Slice(operation.done, depth, begin, end, operation, is_wait=True)


def _changes(points: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """The most at each time, where that differs from what was before."""
    result: list[tuple[float, int]] = []
    most: dict[float, int] = {}
    for time, size in points:
        most[time] = max(size, most.get(time, 0))
    for time, size in sorted(most.items()):
        if not result or result[-1][1] != size:
            result.append((time, size))
    return result
