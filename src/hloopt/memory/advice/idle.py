"""Buffers that nothing touches for long around the peak: compute them again, or offload them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.roofline import Roofline
from hloopt.analysis.cost.runs import RUNNING, count_runs
from hloopt.analysis.dataflow import NOTHING
from hloopt.analysis.side_effects import SideEffects
from hloopt.ir import Instruction, Opcode
from hloopt.ir.opcode import COLLECTIVES
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.memory.advice.gaps import Gap, Place, Places
from hloopt.memory.advice.model import Effect, Obstacle, Offload, Rematerialization, Suggested
from hloopt.memory.advice.relief import Relief, Step
from hloopt.memory.allocations import AllocationKind
from hloopt.memory.analysis import MemoryAnalysis, shape_text
from hloopt.targets import Target

_SMALLEST_SHARE = 1000  # of the peak: what is smaller is not worth a line
_HOST_LINK = "pcie"
_NOT_TWICE = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.WHILE, Opcode.CALL, Opcode.CONDITIONAL),
        *(Opcode.COPY_START, Opcode.COPY_DONE, Opcode.ASYNC_START, Opcode.ASYNC_UPDATE),
        *(Opcode.ASYNC_DONE, Opcode.PARTITION_ID, Opcode.REPLICA_ID, Opcode.AFTER_ALL),
    )
)
"""Beside what has side effects and what talks to other devices: never computed again."""

_NO_REPETITION = "results of loops, calls, collectives, side effects or unknown custom calls"
_OPERANDS_GONE = "what they are computed from is gone when they are needed again"
_OTHER_COMPUTATION = "they are needed again in another computation than theirs"


class IdleBuffers:
    """The two ways out for buffers that wait."""

    def __init__(
        self, analysis: MemoryAnalysis, timeline: list[int], target: Target | None
    ) -> None:
        """`timeline` is that of the report. O(instructions)."""
        self.analysis = analysis
        self.timeline = timeline
        self.target = target
        self.flow, self.ranges = analysis.flow, analysis.ranges
        self.peak = max(timeline, default=0)
        self.places = Places(analysis, self.peak // _SMALLEST_SHARE)
        module = analysis.flow.module
        self.costs = CostAnalysis(module)
        self.roofline = None if target is None else Roofline(self.costs, target)
        self.runs = count_runs(module, self.costs)
        self.effects = SideEffects(module)
        self.elapsed = [0.0, *accumulate(map(self._effort, self.places.schedule.steps))]

    def _effort(self, instruction: Instruction) -> float:
        """The cost of all runs of an instruction: the least time, or bytes without a target."""
        if instruction.opcode in RUNNING or instruction.parent not in self.runs:
            return 0.0
        times = self.runs[instruction.parent].times
        if self.roofline is None:
            return float(self.costs.of(instruction).bytes_accessed * times)
        return self.roofline.of(instruction).seconds * times

    def _as_seconds(self, effort: float) -> float | None:
        return None if self.roofline is None else effort

    # -- computing again --------------------------------------------------------------------------

    def rematerialize(self, goal: int) -> tuple[list[Rematerialization], Effect]:
        """The values to rematerialize to lower the peak to `goal`, the cheapest per byte first."""
        relief = Relief(list(self.timeline))
        relief.lower(self._rematerializations, goal)
        return [self._rematerialization(step) for step in relief.steps], Effect(
            self.peak, relief.peak
        )

    def _rematerializations(self, position: int) -> Iterator[Step]:
        for place, gap in self._idle(position):
            answer = self._again(place, gap, position)
            if isinstance(answer, Step):
                yield answer

    def _idle(self, position: int) -> Iterator[tuple[Place, Gap]]:
        """Temporaries that wait at a position to be read again."""
        for place in self.places.all:
            if place.kind is AllocationKind.TEMPORARY:
                gap = self.places.gap_at(place, position)
                if gap is not None and gap.after < self.places.end:
                    yield place, gap

    def _again(self, place: Place, gap: Gap, position: int) -> Step | str:
        """The step that computes what is kept in a gap once more, or why it cannot be done."""
        instruction = self.flow.definer[gap.value]
        if not self._is_repeatable(instruction):
            return _NO_REPETITION
        after = self.places.position_in(instruction, gap.after)
        if after is None or after <= position:
            return _OTHER_COMPUTATION
        needs = self._alive_operands(instruction, after)
        if needs is None:
            return _OPERANDS_GONE
        extra = 0
        if instruction.shape.is_tuple:
            sizes = self.analysis.assignment.backend.sizes.slots(instruction.shape)
            extra = sum(sizes) - self.analysis.value_size(gap.value)
        price = self._effort(instruction) / place.size
        if self._is_unread(instruction, gap):
            price = 0.0
        return Step(place, Gap(gap.value, gap.before, after), price, extra, needs)

    def _is_repeatable(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        if opcode in _NOT_TWICE or opcode in COLLECTIVES or self.effects.of(instruction):
            return False
        if instruction.control_predecessors or instruction.control_successors:
            return False
        return instruction.parent in self.runs and not (
            opcode is Opcode.CUSTOM_CALL and instruction in self.costs.unknown_calls
        )

    def unrepeatable(self, position: int) -> list[Obstacle]:
        """The reason why idle temporaries at a position are not computed again, the most bytes
        first."""
        found: dict[str, list[int]] = {}
        for place, gap in self._idle(position):
            answer = self._again(place, gap, position)
            if isinstance(answer, str):
                found.setdefault(answer, []).append(place.size)
        obstacles = [Obstacle(why, len(sizes), sum(sizes)) for why, sizes in found.items()]
        return sorted(obstacles, key=lambda obstacle: -obstacle.size)

    def _alive_operands(self, instruction: Instruction, position: int) -> tuple[Place, ...] | None:
        """The places of what an instruction reads, if all of it is there at a position."""
        needs: dict[Place, None] = {}
        start, end = self.ranges.start, self.ranges.end
        for operand in instruction.operands:
            for value in self.flow.read(instruction, operand):
                if value == NOTHING or self.flow.definer[value].opcode is Opcode.CONSTANT:
                    continue
                if not start[value] <= position <= end[value]:
                    return None
                place = self.places.of_value.get(value)
                if place is not None:
                    needs[place] = None
        return tuple(needs)

    def _is_unread(self, instruction: Instruction, gap: Gap) -> bool:
        """Whether nothing reads a result before a gap: then it is only computed later."""
        return not instruction.shape.is_tuple and (
            gap.before == self.places.schedule.times[instruction]
        )

    def _rematerialization(self, step: Step) -> Rematerialization:
        instruction = self.flow.definer[step.gap.value]
        is_later = self._is_unread(instruction, step.gap)
        times = 0 if is_later else self.runs[instruction.parent].times
        return Rematerialization(
            suggested(self.analysis, step.gap.value, step.place.kind, step.place.size),
            (step.gap.before, step.gap.after),
            self.costs.of(instruction).flops * times,
            self._as_seconds(0.0 if is_later else self._effort(instruction)),
            is_later,
        )

    # -- host memory ------------------------------------------------------------------------------

    def offload(self, goal: int) -> tuple[list[Offload], Effect]:
        """The values to offload to the host to lower the peak to `goal`, the longest idle first."""
        relief = Relief(list(self.timeline))
        relief.lower(self._offloads, goal)
        return [self._offload(step) for step in relief.steps], Effect(self.peak, relief.peak)

    def _offloads(self, position: int) -> Iterator[Step]:
        for place in self.places.all:
            if place.kind is AllocationKind.CONSTANT:
                continue
            gap = self.places.gap_at(place, position)
            if gap is None or not self._can_move(gap.value):
                continue
            idle = self._idle_effort(gap)
            if idle > 0:
                yield Step(place, gap, self._moved(place, gap) / place.size / idle)

    def _can_move(self, value: int) -> bool:
        shape = self.flow.shape(value)
        return not shape.is_tuple and shape.layout.memory_space != HOST_MEMORY_SPACE

    def _idle_effort(self, gap: Gap) -> float:
        """The time of what runs meanwhile."""
        return self.elapsed[gap.after] - self.elapsed[gap.before + 1]

    def _moved(self, place: Place, gap: Gap) -> int:
        """Bytes over the link: nothing goes out before the start, nor comes back at the end."""
        return place.size * ((gap.before >= 0) + (gap.after < self.places.end))

    def _offload(self, step: Step) -> Offload:
        moved = self._moved(step.place, step.gap)
        links = () if self.target is None else self.target.links
        rates = [link.bandwidth / 2 for link in links if link.name == _HOST_LINK]
        return Offload(
            suggested(self.analysis, step.gap.value, step.place.kind, step.place.size),
            (step.gap.before, step.gap.after),
            moved,
            moved / rates[0] if rates else None,  # links are given for both directions together
            self._as_seconds(self._idle_effort(step.gap)),
        )


def suggested(analysis: MemoryAnalysis, value: int, kind: AllocationKind, size: int) -> Suggested:
    """The name of a value's buffer in reports."""
    instruction = analysis.flow.definer[value]
    return Suggested(
        analysis.name(value),
        instruction.parent.name,
        shape_text(analysis.flow.shape(value)),
        size,
        kind,
        op_name_of(instruction),
    )
