"""Memory by liveness: every buffer counts while it is needed, wherever it would be placed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from hloopt.analysis.liveness import FlatSchedule, LiveRanges
from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.attribute_format import braces
from hloopt.ir.attribute_values import parse_metadata
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.ir.shape import HOST_MEMORY_SPACE
from hloopt.memory.buffers import Buffer, BufferKind, Buffers
from hloopt.memory.model import LiveBuffer, MemoryReport, MemorySizes, PeakInstruction
from hloopt.memory.values import Values

SCHEDULE = "schedule"
POST_ORDER = "post-order (the module is not scheduled)"


def estimate_memory(module: Module) -> MemoryReport:
    """The memory `module` needs by liveness over its schedule, or over post-order without one.

    Near-linear in the instructions and the parts of their shapes. Raises HloVerifyError for a
    module whose shapes, aliases or calls do not fit together.
    """
    schedule = FlatSchedule.of(module)
    values = Values.of(schedule)
    ranges = LiveRanges.of(schedule, values.held, values.start)
    buffers = Buffers.of(module, values, ranges)
    return _Estimate(module, values, buffers).report()


@dataclass(slots=True, eq=False)
class _Sized:
    buffer: Buffer
    size: int
    is_host: bool
    is_table: bool


class _Estimate:
    """The sums over the buffers of one module."""

    def __init__(self, module: Module, values: Values, buffers: Buffers) -> None:
        self.module = module
        self.values = values
        self.buffers = buffers
        self.sized = [
            _Sized(
                buffer,
                buffers.size(buffer),
                values.memory_space(buffer.values[0]) == HOST_MEMORY_SPACE,
                values.is_tuple(buffer.values[0]),
            )
            for buffer in buffers.all()
        ]

    def report(self) -> MemoryReport:
        timeline = self._live_bytes([s for s in self.sized if _counts_at_peak(s)], repeat=True)
        peak = max(timeline, default=0)
        position = timeline.index(peak) if peak else None
        return MemoryReport(
            module=self.module.name,
            order=SCHEDULE if self.values.schedule.is_scheduled else POST_ORDER,
            device=self._sizes(is_host=False),
            host=self._sizes(is_host=True),
            constant=sum(s.size for s in self.sized if s.buffer.kind is BufferKind.CONSTANT),
            peak=peak,
            peak_instruction=None if position is None else self._peak_instruction(position),
            live_at_peak=[] if position is None else self._live_at(position, peak),
            timeline=timeline,
            assumptions=self._assumptions(),
        )

    # -- sums -------------------------------------------------------------------------------

    def _sizes(self, *, is_host: bool) -> MemorySizes:
        argument = output = alias = tables = 0
        temporaries: list[_Sized] = []
        for sized in self.sized:
            if sized.is_host is not is_host:
                continue
            buffer = sized.buffer
            if buffer.is_output:
                output += sized.size
            if buffer.kind is BufferKind.ARGUMENT:
                argument += sized.size
                alias += sized.size if buffer.is_donated else 0
            elif buffer.kind is BufferKind.TEMPORARY:
                if sized.is_table:
                    tables += sized.size
                else:
                    temporaries.append(sized)
        repeat = not is_host
        temp = max(self._live_bytes(temporaries, repeat=repeat), default=0) if temporaries else 0
        return MemorySizes(argument, output, alias, temp + tables)

    def _live_bytes(self, sized: list[_Sized], *, repeat: bool) -> list[int]:
        """Bytes in use at each position; `repeat` adds what repeated calls need inside."""
        count = len(self.values.schedule.steps)
        changes = [0] * (count + 2)
        for one in sized:
            for start, end in self._intervals(one.buffer):
                changes[start] += one.size
                changes[end + 1] -= one.size
        timeline = list(accumulate(changes))[:count]
        if repeat:
            self._add_repeated_calls(timeline)
        return timeline

    def _intervals(self, buffer: Buffer) -> list[tuple[int, int]]:
        """When memory is set aside; positions where the buffer's live ranges touch count once."""
        if buffer.kind is not BufferKind.TEMPORARY:
            return [(0, len(self.values.schedule.steps))]
        result: list[tuple[int, int]] = []
        for start, end in buffer.live:
            if result and start <= result[-1][1]:
                start = result[-1][1] + 1
            if start <= end:
                result.append((start, end))
        return result

    def _add_repeated_calls(self, timeline: list[int]) -> None:
        """Computations are laid out at their first call; add their need to the later calls."""
        schedule = self.values.schedule
        needs: dict[Computation, int] = {}
        for position, caller in enumerate(schedule.steps):
            for callee in _repeated_callees(schedule, caller):
                need = needs.get(callee)
                if need is None:
                    start, end = schedule.spans[callee]
                    before = timeline[start - 1] if start else 0
                    need = max(0, max(timeline[start:end], default=0) - before)
                    needs[callee] = need
                timeline[position] += need

    # -- the peak -----------------------------------------------------------------------------

    def _peak_instruction(self, position: int) -> PeakInstruction:
        instruction = self.values.schedule.steps[position]
        return PeakInstruction(
            position,
            instruction.name,
            instruction.parent.name,
            instruction.opcode.value,
            _op_name(instruction),
        )

    def _live_at(self, position: int, peak: int) -> list[LiveBuffer]:
        live = [
            self._live_buffer(sized, position)
            for sized in self.sized
            if sized.size
            and _counts_at_peak(sized)
            and any(start <= position <= end for start, end in self._intervals(sized.buffer))
        ]
        inside = peak - sum(buffer.size for buffer in live)
        if inside:
            live.append(self._inside_repeated_call(position, inside))
        return sorted(live, key=lambda buffer: -buffer.size)

    def _live_buffer(self, sized: _Sized, position: int) -> LiveBuffer:
        values, buffer = self.values, sized.buffer
        value = self._representative(buffer, position)
        instruction = values.definer[value]
        index = values.index(value)
        shape = instruction.shape
        for number in index:
            shape = shape.elements[number]
        live = next(
            (start, end) for start, end in self._intervals(buffer) if start <= position <= end
        )
        suffix = braces(map(str, index)) if index else ""
        return LiveBuffer(
            instruction.name + suffix,
            instruction.parent.name,
            f"tuple of {len(shape.elements)}" if shape.is_tuple else shape.text,
            sized.size,
            buffer.kind,
            _op_name(instruction),
            live,
        )

    def _representative(self, buffer: Buffer, position: int) -> int:
        """The value to name a buffer by: an argument, or the first live one, largest first."""
        ranges = self.buffers.ranges
        if buffer.kind is BufferKind.ARGUMENT:
            parameters = set(self.values.entry_parameters)
            return next(v for v in buffer.values if self.values.definer[v] in parameters)
        return min(
            buffer.values,
            key=lambda v: (
                not ranges.start[v] <= position <= ranges.end[v],
                -self.values.size(v),
                ranges.start[v],
                v,
            ),
        )

    def _inside_repeated_call(self, position: int, size: int) -> LiveBuffer:
        caller = self.values.schedule.steps[position]
        callees = _repeated_callees(self.values.schedule, caller)
        return LiveBuffer(
            f"inside {', '.join(callee.name for callee in callees)}",
            caller.parent.name,
            "",
            size,
            BufferKind.TEMPORARY,
            _op_name(caller),
            (position, position),
        )

    # -- what the numbers rest on ---------------------------------------------------------------

    def _assumptions(self) -> list[str]:
        schedule = self.values.schedule
        result = [
            "Estimated by liveness: temporaries count while they are needed. Placing them can "
            "leave gaps, and placing them inside outputs or donated arguments can save memory."
        ]
        if not schedule.is_scheduled:
            result.append(
                "The module is not scheduled: instructions are taken in post-order, operands "
                "first. A scheduler, and fusion before it, will change the peak."
            )
        if self.buffers.kept_apart:
            result.append(
                f"{self.buffers.kept_apart} values that should share a buffer are needed at the "
                "same time and count separately, as if the compiler copied."
            )
        if any(_repeated_callees(schedule, caller) for caller in schedule.steps):
            result.append(
                "A computation called more than once is laid out at its first call; each later "
                "call adds the most it needed there."
            )
        if any(sized.is_host and sized.size for sized in self.sized):
            result.append("Buffers in host memory, S(5), are listed apart and not in the peak.")
        return result


def _counts_at_peak(sized: _Sized) -> bool:
    is_inner_table = sized.is_table and sized.buffer.kind is BufferKind.TEMPORARY
    return not sized.is_host and not is_inner_table


def _repeated_callees(schedule: FlatSchedule, caller: Instruction) -> list[Computation]:
    if not caller.called or caller.opcode not in CONTROL_FLOW_CALLERS:
        return []
    return [c for c in caller.called if not schedule.is_entered_by(c, caller)]


def _op_name(instruction: Instruction) -> str:
    """The `op_name` of an instruction's metadata, or an empty string."""
    text = instruction.attributes.get("metadata")
    return parse_metadata(text).op_name if text else ""
