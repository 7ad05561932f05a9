"""The memory report of a module, from its buffer assignment."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.source_lines import SourceLine, SourceLines
from hloopt.collector import collector_paused
from hloopt.diagnostics import counted
from hloopt.ir import Module
from hloopt.ir.attributes.formats import braces
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.memory.allocations import Allocation, AllocationKind
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import TPU, Backend, backend_of
from hloopt.memory.buffers import Buffer
from hloopt.memory.gpu.colors import COLLECTIVE_COLOR
from hloopt.memory.heap.events import HeapTrace
from hloopt.memory.heap.replay import Replay, replay
from hloopt.memory.model import (
    AllocationSummary,
    LiveBuffer,
    MemoryReport,
    PeakInstruction,
    SpaceUse,
)
from hloopt.memory.schedulers import Schedule, schedule_module
from hloopt.memory.statistics import is_set_aside, statistics_of
from hloopt.memory.traffic import traffic_of

SCHEDULE = "schedule"


def analyze_memory(module: Module, *, backend: Backend | None = None) -> MemoryReport:
    """The memory `module` needs, as XLA assigns buffers by its schedule: `MemoryAnalysis.report`.

    Near-linear in the module. Raises HloVerifyError for a module whose shapes, aliases or calls do
    not fit together.
    """
    with collector_paused():
        return MemoryAnalysis.of(module, backend=backend).report()


class MemoryAnalysis:
    """The buffer assignment of a module, and what people ask of it."""

    def __init__(
        self, assignment: BufferAssignment, schedule: Schedule | None, space: int = 0
    ) -> None:
        """`schedule` is what a scheduler found, None where the module has its own order; `space`
        is the memory space to look at."""
        self.assignment = assignment
        self.schedule = schedule
        self.space = space
        self.flow = assignment.flow
        self.ranges = assignment.ranges
        self.lines = SourceLines(self.flow.module)
        self.value_size = assignment.buffers.value_size
        entry = self.flow.module.entry
        self.parameters = {v for p in entry.parameters for v in self.flow.held[p]}
        self.results = set(self.flow.members(self.flow.held[entry.root]))
        self.allocations = {
            number: allocation
            for number, allocation in enumerate(assignment.allocations)
            if assignment.counts_in(allocation.color, space)
        }
        """Of the memory space, by number."""
        self.set_aside = [a for a in self.allocations.values() if is_set_aside(a)]
        self.trace, self.replay = self._fullest_heap()

    @classmethod
    def of(
        cls,
        module: Module,
        *,
        backend: Backend | None = None,
        space: int = 0,
        packs: bool = True,
    ) -> MemoryAnalysis:
        """Assign buffers, and look at those in one memory space.

        A module without a schedule is put in the order XLA's default memory scheduler finds, and
        the report says so. Without `backend` the module tells which it was compiled for. Without
        `packs` temporaries have no places, and there is no report, only what is alive when.
        Near-linear in the module. Raises HloVerifyError for a module whose shapes, aliases or
        calls do not fit together.
        """
        backend = backend or backend_of(module)
        schedule = None if module.is_scheduled else schedule_module(module, backend=backend)
        orders = None if schedule is None else schedule.orders
        assignment = BufferAssignment.of(module, orders=orders, backend=backend, packs=packs)
        return cls(assignment, schedule, space)

    def in_space(self, space: int) -> MemoryAnalysis:
        """The analysis of another memory space of the assignment."""
        return MemoryAnalysis(self.assignment, self.schedule, space)

    def report(self) -> MemoryReport:
        """Sizes, allocations, memory over time and what is alive at the peak."""
        spaces = self._spaces()
        own = [use.statistics for use in spaces if use.number == self.space]
        statistics = own[0] if own else statistics_of(self.assignment, self.space)
        return MemoryReport(
            module=self.flow.module.name,
            backend=self.assignment.backend.name,
            space=self.assignment.backend.space_name(self.space),
            order=SCHEDULE if self.schedule is None else self._order(self.schedule),
            statistics=statistics,
            allocations=[
                self._summary(index, allocation) for index, allocation in self.allocations.items()
            ],
            peak_instruction=self._peak_instruction() if statistics.peak_memory else None,
            live_at_peak=self._live_at_peak(),
            timeline=self._timeline(statistics.peak_without_temporaries),
            spaces=spaces,
            apart=self.assignment.backend.apart,
            assumptions=self._assumptions(),
        )

    def _order(self, schedule: Schedule) -> str:
        return f"{schedule.algorithm} (the module is not scheduled)"

    def _fullest_heap(self) -> tuple[HeapTrace, Replay]:
        """Of the heaps that count in the memory space the one that needs most."""
        traces = self.assignment.traces_in(self.space)
        found = [(trace, replay(trace, self.value_size)) for trace in traces]
        return max(found, key=lambda pair: pair[1].peak, default=(HeapTrace(), Replay()))

    # -- over time ------------------------------------------------------------------------------

    def _timeline(self, throughout: int) -> list[int]:
        result: list[int] = []
        live = 0
        changes = iter(self.replay.changes)
        change = next(changes, None)
        for position in range(len(self.assignment.schedule.steps)):
            most = live
            while change is not None and change[0] <= position:
                live = change[1]
                most = max(most, live)
                change = next(changes, None)
            result.append(throughout + most)
        return result

    def _peak_instruction(self) -> PeakInstruction:
        instruction = self.assignment.schedule.steps[self.replay.peak_time]
        return PeakInstruction(
            self.replay.peak_time,
            instruction.name,
            instruction.parent.name,
            instruction.opcode.value,
            op_name_of(instruction),
            self.lines.of(instruction),
        )

    def _spaces(self) -> list[SpaceUse]:
        """Each memory space in which anything lies; traffic only where there are several."""
        spaces = self.assignment.spaces()
        traffic = traffic_of(self.assignment) if len(spaces) > 1 else {}
        name = self.assignment.backend.space_name
        return [
            SpaceUse(space, name(space), statistics_of(self.assignment, space), traffic.get(space))
            for space in spaces
        ]

    # -- allocations and what is alive ------------------------------------------------------------

    def _summary(self, index: int, allocation: Allocation) -> AllocationSummary:
        return AllocationSummary(
            index,
            allocation.size,
            allocation.kind,
            allocation.color,
            allocation.parameter,
            allocation.is_aliased,
            allocation.is_live_out,
            self.name(self._largest(allocation)) if allocation.offsets else "",
            len(allocation.offsets),
        )

    def _largest(self, allocation: Allocation) -> int:
        """The value to name an allocation by: the parameter, or the largest, results first."""
        if allocation.parameter is not None:
            return next(v for v in allocation.offsets if v in self.parameters)
        return max(allocation.offsets, key=lambda v: (self.value_size(v), v in self.results, -v))

    def alive_at_peak(self) -> frozenset[str]:
        """The names of the instructions whose values are alive at the peak. O(values)."""
        values = [value for value, _, _ in self._throughout()]
        values += [value for value, _ in self._temporaries_at_peak()]
        return frozenset(self.flow.definer[value].name for value in values)

    def _live_at_peak(self) -> list[LiveBuffer]:
        end = len(self.assignment.schedule.steps)
        live = [
            self._live_buffer(value, size, kind, (0, end))
            for value, size, kind in self._throughout()
        ]
        for value, size in self._temporaries_at_peak():
            span = self.ranges.start[value], self.ranges.end[value]
            live.append(self._live_buffer(value, size, AllocationKind.TEMPORARY, span))
        return sorted(live, key=lambda buffer: -buffer.size)

    def _throughout(self) -> Iterator[tuple[int, int, AllocationKind]]:
        """A value, the size and the kind of each allocation that is there all the time."""
        for allocation in self.set_aside:
            size = max(map(self.value_size, allocation.offsets), default=0)
            if size:
                yield self._largest(allocation), size, allocation.kind

    def _temporaries_at_peak(self) -> Iterator[tuple[int, int]]:
        """Values of the heap with their sizes."""
        groups = self.trace.groups()
        for place in self.replay.live_at_peak:
            size = self.value_size(place)
            if size:
                yield self._live_value(groups[place]), size

    def _live_value(self, values: list[int]) -> int:
        """Of the values at one place the one that is needed at the peak."""
        time, ranges = self.replay.peak_time, self.ranges
        return next((v for v in values if ranges.start[v] <= time <= ranges.end[v]), values[0])

    def _live_buffer(
        self, value: int, size: int, kind: AllocationKind, live: tuple[int, int]
    ) -> LiveBuffer:
        instruction = self.flow.definer[value]
        return LiveBuffer(
            self.name(value),
            instruction.parent.name,
            shape_text(self.flow.shape(value)),
            size,
            kind,
            op_name_of(instruction),
            self.line(value),
            live,
        )

    def buffer_of(self, value: int) -> Buffer:
        """The buffer a value lies in."""
        return self.assignment.buffers.of_value[value]

    def name(self, value: int) -> str:
        """The instruction that defines a value, with the shape index where it has one."""
        index = self.flow.index(value)
        suffix = braces(map(str, index)) if index else ""
        return self.flow.definer[value].name + suffix

    def line(self, value: int) -> SourceLine:
        """The line of the program a value is from."""
        return self.lines.of(self.flow.definer[value], self.flow.index(value))

    # -- what the numbers rest on ---------------------------------------------------------------

    def _assumptions(self) -> list[str]:
        assignment = self.assignment
        rules = f"by the rules of XLA:{assignment.backend.name.upper()}"
        if assignment.backend is TPU:
            rules = (
                "by the rules that XLA:CPU and XLA:GPU share: those of XLA:TPU are not published"
            )
        result = [
            f"Buffers are assigned {rules}. The size of the generated code is not known from a "
            "module."
        ]
        if self.schedule is not None:
            result.append(
                "The module is not scheduled: this is the order that XLA's default memory "
                f"scheduler finds ({self.schedule.algorithm}). Passes before it, fusion most of "
                "all, and the compiler's own order will change the peak."
            )
        if self.ranges.conflicts:
            result.append(
                counted(
                    self.ranges.conflicts,
                    "value is written over while it is needed",
                    "values are written over while they are needed",
                )
                + ": XLA inserts copies there before it assigns buffers, and these are not counted."
            )
        if self.flow.unions:
            result.append(
                "A computation called from several places is laid out once, at its first call; "
                "flatten-call-graph gives each call its own."
            )
        colors = {a.color for a in self.allocations.values() if a.size}
        if len(assignment.traces_in(self.space)) > 1:
            result.append(
                "Each memory space has its own temporaries; the peak counts those of the space "
                "that needs most, as in XLA."
            )
        copied = sum(
            a.color == COLLECTIVE_COLOR and is_set_aside(a) for a in assignment.allocations
        )
        if copied:
            result.append(
                counted(
                    copied,
                    "argument, constant or result lies",
                    "arguments, constants or results lie",
                )
                + " in the memory of collectives: XLA:GPU copies those before it assigns buffers, "
                "and these copies are not counted."
            )
        if HOST_MEMORY_SPACE in colors and not self.space:
            result.append("Buffers in host memory, S(5), are listed apart; they count in the peak.")
        return result


def shape_text(shape: Shape) -> str:
    """A shape in a line, however many elements a tuple has."""
    return f"tuple of {len(shape.elements)}" if shape.is_tuple else shape.text
