"""A run of a module on one axis of time: slices of the main stream and of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isclose
from typing import NamedTuple

from hloopt.ir import Computation, Instruction
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.frames import Call, Frame, Slice
from hloopt.simulation import ComputationRun, Operation

MAIN = "main"
MOST_LEVELS = 16
"""Lanes of the main stream: calls that are nested deeper share the last."""
MOST_SLICES = 100_000
"""Of a whole run that is written out, beside one of each computation."""


class Visit(NamedTuple):
    """One run of a computation, at its place in the run of the module."""

    frame: Frame
    begin: float
    scale: float


class Rest(NamedTuple):
    """Slices that are not written out one by one, at their place in the run of the module."""

    call: Call
    trips: int
    """0 where all that is left of a loop is its last condition."""
    begin: float
    end: float


@dataclass(slots=True)
class Timeline:
    """A run of a module: each computation once, and who runs it when and how often."""

    frames: dict[Computation, Frame]
    """Callers first, the entry before all."""
    lanes: list[str]
    """Names: of the main stream, a lane per depth of calls, then of streams, a lane per operation
    that one has under way at the same time."""

    @classmethod
    def of(cls, findings: ScheduleFindings) -> Timeline:
        """Linear in the instructions that run, but for sorting."""
        return _Layout(findings).timeline()

    @property
    def entry(self) -> Frame:
        return next(iter(self.frames.values()))

    def visits(self, most: int = MOST_SLICES) -> Iterator[Visit | Rest]:
        """The run of the module: runs of computations, each before those that it calls.

        All trips, as far as `most` slices go; what takes more is written out once per computation.
        """
        seen: set[Frame] = set()
        room = most
        start: Iterator[Visit | Rest] = iter([Visit(self.entry, 0.0, 1.0)])
        stack = [(start, False)]
        while stack:
            visits, is_whole = stack[-1]
            visit = next(visits, None)
            if visit is None:
                stack.pop()
                continue
            yield visit
            if isinstance(visit, Rest):
                continue
            seen.add(visit.frame)
            calls = []
            for call in visit.frame.calls:
                size = sum(frame.size * times for frame, times in call.frames)
                fits = is_whole or size <= room
                room -= size if fits and not is_whole else 0
                is_new = any(frame not in seen for frame, _ in call.frames)
                seen.update(frame for frame, _ in call.frames)
                calls.append((_trips(visit, call, call.rounds if fits else int(is_new)), fits))
            stack += reversed(calls)

    def memory(self, most: int = MOST_SLICES) -> list[tuple[float, int]]:
        """Bytes in use from a time on, where that changes: of trips that are not written out the
        most of them."""
        points: dict[float, int] = {}

        def note(time: float, size: int) -> None:
            points[time] = max(size, points.get(time, 0))

        for visit in self.visits(most):
            if isinstance(visit, Rest):
                note(visit.begin, max(frame.peak for frame, _ in visit.call.frames))
            else:
                for time, size in visit.frame.memory:
                    note(visit.begin + time * visit.scale, size)
        return _changes(points)


def _trips(caller: Visit, call: Call, count: int) -> Iterator[Visit | Rest]:
    """The first `count` rounds of a call, and the rest of its trips."""
    begin, scale = caller.begin + call.begin * caller.scale, caller.scale * call.scale
    for trip in range(count):
        for frame, times in call.frames:
            if trip < times:
                yield Visit(frame, begin, scale)
                begin += frame.run.duration * scale
    end = caller.begin + call.end * caller.scale
    if count < call.rounds and end > begin:
        yield Rest(call, call.trips - count, begin, end)


def _changes(points: dict[float, int]) -> list[tuple[float, int]]:
    result: list[tuple[float, int]] = []
    for time, size in sorted(points.items()):
        if not result or result[-1][1] != size:
            result.append((time, size))
    return result


# -- layout ---------------------------------------------------------------------------------------

_Row = tuple[str, int]
"""A stream, and which of the operations that it has under way at the same time."""


@dataclass(slots=True)
class _Layout:
    findings: ScheduleFindings
    frames: dict[Computation, Frame] = field(default_factory=dict)
    rows: dict[Computation, list[tuple[_Row, Operation]]] = field(default_factory=dict)
    floors: dict[Computation, dict[str, int]] = field(default_factory=dict)
    """By computation and stream how many rows its callers have operations in meanwhile."""

    def timeline(self) -> Timeline:
        simulation = self.findings.simulation
        entry = simulation.module.entry
        self.frames[entry] = Frame(simulation.entry, weight=1.0, first=0.0)
        for computation in reversed(list(simulation.runs)):  # callers first
            if computation in self.frames:
                self._lay_out(self.frames[computation])
        order = [c for c in reversed(list(simulation.runs)) if c in self.frames]
        depth = 1 + max(frame.level for frame in self.frames.values())
        lanes = [MAIN if level == 0 else f"{MAIN} {level}" for level in range(depth)]
        numbers: dict[_Row, int] = {}
        for stream, row in sorted({row for rows in self.rows.values() for row, _ in rows}):
            numbers[stream, row] = len(lanes)
            lanes.append(stream if row == 0 else f"{stream} {row + 1}")
        for computation in reversed(order):  # callees first
            self._finish(self.frames[computation], numbers)
        return Timeline({computation: self.frames[computation] for computation in order}, lanes)

    def _lay_out(self, frame: Frame) -> None:
        """Find rows for the operations of a computation, and frames for what it calls."""
        run = frame.run
        rows = self.rows[run.computation] = self._rows(run)
        usage = self.findings.memory.usage[run.computation]
        arguments = self.findings.memory.arguments
        enters = self.findings.simulation.loops != "cost"
        for position, instruction in enumerate(run.order):
            begin, end = run.begin[position], run.end[position]
            called = run.calls.get(instruction) if enters else None
            if not called:
                frame.memory.append((begin, arguments + usage[position]))
                continue
            frame.calls.append(self._call(frame, instruction, begin, end, called))
            busy: dict[str, int] = dict(self.floors.get(run.computation, {}))
            for (stream, row), operation in rows:
                if operation.begin < end and operation.finish > begin:
                    busy[stream] = max(busy.get(stream, 0), row + 1)
            for callee, _ in called:
                floor = self.floors.setdefault(callee, {})
                for stream, row in busy.items():
                    floor[stream] = max(floor.get(stream, 0), row)

    def _rows(self, run: ComputationRun) -> list[tuple[_Row, Operation]]:
        """A row for each operation, the first of its stream that is free."""
        floor = self.floors.get(run.computation, {})
        free_from: dict[str, list[float]] = {}
        result = []
        for operation in sorted(run.operations, key=lambda operation: operation.begin):
            stream = operation.stream.name
            rows = free_from.setdefault(stream, [])
            row = next((n for n, time in enumerate(rows) if time <= operation.begin), len(rows))
            rows[row:] = [operation.finish, *rows[row + 1 :]]
            result.append(((stream, floor.get(stream, 0) + row), operation))
        return result

    def _call(
        self,
        caller: Frame,
        instruction: Instruction,
        begin: float,
        end: float,
        called: list[tuple[Computation, int]],
    ) -> Call:
        frames = []
        work = 0.0
        for callee, times in called:
            if not times:
                continue
            frame = self.frames.get(callee)
            if frame is None:
                frame = self.frames[callee] = Frame(self.findings.simulation.runs[callee])
            frame.first = min(frame.first, caller.first + begin + work)
            frame.level = max(frame.level, min(caller.level + 1, MOST_LEVELS - 1))
            frames.append((frame, times))
            work += frame.run.duration
        work = sum(frame.run.duration * times for frame, times in frames)
        is_alone = not work or isclose(end - begin, work)
        scale = 1.0 if is_alone else (end - begin) / work
        for frame, times in frames:
            frame.weight += caller.weight * times * scale
        return Call(instruction, begin, end, frames, called[-1][1], scale)

    def _finish(self, frame: Frame, numbers: dict[_Row, int]) -> None:
        """Put slices in lanes, and add up what is called; callees are finished."""
        frame.slices = list(self._main_slices(frame))
        for row, operation in self.rows[frame.run.computation]:
            if operation.finish > operation.begin:
                lane = numbers[row]
                place = (operation.start, lane, operation.begin, operation.finish)
                frame.slices.append(Slice(*place, operation))
        frame.slices.sort(key=lambda piece: (piece.lane, piece.begin, -piece.end))
        frame.lanes = {piece.lane for piece in frame.slices}
        frame.size = len(frame.slices) + len(frame.memory)
        frame.peak = max((size for _, size in frame.memory), default=0)
        for call in frame.calls:
            for callee, times in call.frames:
                frame.lanes |= callee.lanes
                frame.size += callee.size * times
                frame.peak = max(frame.peak, callee.peak)

    def _main_slices(self, frame: Frame) -> Iterator[Slice]:
        run = frame.run
        calls = {call.instruction: call for call in frame.calls}
        for instruction, begin, end in zip(run.order, run.begin, run.end, strict=True):
            if end > begin:
                call = calls.get(instruction)
                yield Slice(instruction, frame.level, begin, end, call=call)
        for operation in run.operations:
            if operation.exposed > 0:
                begin, end = operation.needed, operation.finish
                yield Slice(operation.done, frame.level, begin, end, operation, is_wait=True)
