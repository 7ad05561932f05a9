"""The memory in use while computations are scheduled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from hloopt.analysis.dataflow import Dataflow
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.memory.buffers import Buffers

_READS_TABLE_ONLY = (Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST)
_NONE: list[int] = []
_PARAMETER = Opcode.PARAMETER  # a member of an enum is slow to look up in a loop
ShapeSize = Callable[[Shape], int]


@dataclass(slots=True)
class PressureState:
    """The memory of a computation, as far as it is known."""

    live_below: tuple[int, ...]
    """The buffers alive after its call."""
    peak: int = 0
    """The most that it adds to them at one time."""


class Pressure:
    """The memory in use at one point of a computation, which moves up instruction by instruction.

    Scheduling top down the point moves down, with what begins and ends changing places.
    """

    __slots__ = ("change", "initial", "life", "live", "peak")

    def __init__(self, life: BufferLife, live_below: Iterable[int] = ()) -> None:
        self.life = life
        self.live = set(live_below)
        self.initial = sum(map(life.size.__getitem__, self.live))
        """Bytes alive below the computation's call."""
        self.change = 0
        """Bytes by which the usage differs from that."""
        self.peak = 0
        """The largest change so far."""

    @property
    def usage(self) -> int:
        """Bytes in use."""
        return self.initial + self.change

    def move(self, allocated: Sequence[int], released: Sequence[int], inside: int) -> list[int]:
        """Go past an instruction; the buffers that begin or end to live there. O(buffers).

        `inside`: the peak of what the instruction calls.
        """
        size, live = self.life.size, self.live
        change = self.change
        changed = []
        if inside:
            self.peak = max(self.peak, change + inside)
        for buffer in allocated:
            if buffer not in live:
                live.add(buffer)
                change += size[buffer]
                changed.append(buffer)
        if change > self.peak:
            self.peak = change
        for buffer in released:
            if buffer in live:
                live.remove(buffer)
                change -= size[buffer]
                changed.append(buffer)
        self.change = change
        return changed

    def outlook(
        self, allocated: Sequence[int], released: Sequence[int], inside: int
    ) -> tuple[int, int]:
        """By how much going past an instruction would change the usage, and at most. O(buffers)."""
        size, live = self.life.size, self.live
        new = 0
        for buffer in allocated:
            if buffer not in live:
                new += size[buffer]
        gone = 0
        for buffer in released:
            if buffer in live:
                gone += size[buffer]
        return new - gone, max(new, inside)


@dataclass(slots=True)
class BufferLife:
    """The live ranges of a module's buffers by its present schedule.

    Buffers are numbered as in `Buffers.all`. Those outside of the default memory space do not
    count, nor do those that begin with a parameter of the entry. O(slots of all instructions).
    """

    flow: Dataflow
    buffers: Buffers
    shape_size: ShapeSize
    size: list[int] = field(default_factory=list)
    """Bytes of each buffer."""
    states: dict[Computation, PressureState] = field(default_factory=dict)
    _held: dict[Instruction, list[int]] = field(default_factory=dict)
    """The buffers that count, by the instructions that hold them, with repetitions."""
    _own: dict[Instruction, list[int]] = field(default_factory=dict)
    """Those of them that do not begin with a parameter of the entry."""
    _number: list[int] = field(default_factory=list)
    """By value its buffer, -1 where that does not count; the last entry is that of NOTHING."""
    _last: list[Instruction | None] = field(default_factory=list)
    """The last user of each buffer."""
    _first: list[Instruction | None] = field(default_factory=list)
    """The first instruction of the schedule that holds each buffer."""
    _begin: list[Instruction | None] = field(default_factory=list)
    """The same where it also defines a value there, which begins the buffer; else None."""
    _uncounted: set[int] = field(default_factory=set)
    """The buffers that begin with a parameter of the entry."""
    _chain: list[tuple[Instruction, ...]] = field(default_factory=list)
    """The calls that lead to the first definition."""
    _allocated: dict[Instruction, list[int]] = field(default_factory=dict)
    """The answers of `allocated`."""
    _released: dict[Instruction, list[int]] = field(default_factory=dict)
    """The answers of `released` that are not empty."""
    _callees: dict[Instruction, list[Computation]] = field(default_factory=dict)
    """By the instructions that call any, the covered computations they call."""

    @classmethod
    def of(cls, flow: Dataflow, buffers: Buffers, shape_size: ShapeSize) -> BufferLife:
        result = cls(flow, buffers, shape_size)
        result._number = [-1] * (len(flow.definer) + 1)
        size_once = cache(shape_size)  # many buffers have one shape
        for number, buffer in enumerate(buffers.all):
            result.size.append(size_once(flow.shape(buffer.values[0])))
            if not buffer.color:
                for value in buffer.values:
                    result._number[value] = number
        counted, held = result._counted, flow.held
        result._held = {i: counted(held[i]) for order in flow.scope.orders.values() for i in order}
        orders = flow.scope.orders
        result._callees = {
            caller: [callee for callee in caller.called if callee in orders]
            for computation in orders
            for caller in computation.callers
        }
        result.restart()
        return result

    def restart(self) -> None:
        """Look at the schedule of the module again, as it is now."""
        self._first = [None] * len(self.size)
        self._chain = [()] * len(self.size)
        self._last = [None] * len(self.size)
        self._find_first()
        self._find_begin()
        self._find_own()
        self._find_allocated()
        self._find_released()
        self.states = {}
        self._measure()

    @property
    def peak(self) -> int:
        """The largest of the recorded peaks."""
        return max((state.peak for state in self.states.values()), default=0)

    def first_definition(self, buffer: int) -> Instruction:
        """The instruction that defines a buffer."""
        return self._first[buffer] or self.flow.definer[self.buffers.all[buffer].values[0]]

    def last_user(self, buffer: int) -> Instruction | None:
        """The last instruction of the schedule that reads a buffer; None if none does."""
        return self._last[buffer]

    def allocated(self, instruction: Instruction) -> list[int]:
        """The buffers that must be alive for it, per operand: some may come several times.

        Not to be changed, for it is remembered.
        """
        return self._allocated[instruction]

    def released(self, instruction: Instruction) -> list[int]:
        """The buffers that begin with it. Not to be changed, for it is remembered."""
        return self._released.get(instruction, _NONE)

    def allocated_top_down(self, instruction: Instruction) -> list[int]:
        """The buffers of its result."""
        if instruction.opcode in _READS_TABLE_ONLY:
            return self._own_table(instruction)
        return self._own[instruction]

    def released_top_down(self, instruction: Instruction) -> list[int]:
        """The buffers of its operands that nothing uses after it."""
        users = [instruction]
        if instruction.opcode is Opcode.ASYNC_START:
            users += _wrapped_roots(instruction)
        held = [buffer for operand in instruction.operands for buffer in self._held[operand]]
        return [b for b in dict.fromkeys(held) if self._last[b] in users]

    def peak_inside(self, instruction: Instruction) -> int:
        """The largest peak of the computations it calls, bodies of fusions aside."""
        peak, states = 0, self.states
        for callee in self._callees.get(instruction, ()):
            if callee in states and states[callee].peak > peak:
                peak = states[callee].peak
        return peak

    def _counted(self, held: Iterable[int]) -> list[int]:
        """The buffers of values, those that count."""
        number = self._number
        return [buffer for value in self.flow.members(held) if (buffer := number[value]) >= 0]

    def _own_table(self, instruction: Instruction) -> list[int]:
        """The buffers of the first slot of a result that do not begin with a parameter of the
        entry."""
        uncounted = self._uncounted
        tables = self._counted(self.flow.held[instruction][:1])
        return [buffer for buffer in tables if buffer not in uncounted]

    # -- construction ---------------------------------------------------------------------------

    def _find_first(self) -> None:
        """Walk the schedules from the entry, each call's computations before the call."""
        held, first, last, callees = self._held, self._first, self._last, self._callees
        entry = self.flow.module.entry
        stack = [iter(list(entry.instructions))]
        entered = {entry}
        path: list[Instruction] = []  # the calls whose computations are being walked
        while stack:
            rest = stack[-1]
            if len(path) == len(stack):  # back at a call
                rest = chain((path.pop(),), rest)
            for instruction in rest:
                if instruction in callees:
                    callee = next((c for c in callees[instruction] if c not in entered), None)
                    if callee is not None:
                        entered.add(callee)
                        path.append(instruction)
                        stack.append(iter(list(callee.instructions)))
                        break
                for buffer in held[instruction]:
                    if first[buffer] is None:
                        first[buffer] = instruction
                        self._chain[buffer] = tuple(path)
                for operand in instruction.operands:
                    for buffer in held[operand]:
                        last[buffer] = instruction
            else:
                stack.pop()

    def _find_begin(self) -> None:
        definer = self.flow.definer
        self._begin = [
            first if first in [definer[value] for value in buffer.values] else None
            for first, buffer in zip(self._first, self.buffers.all, strict=True)
        ]
        self._uncounted = {
            buffer
            for buffer, first in enumerate(self._first)
            if first is not None and first.opcode is _PARAMETER and first.parent.is_entry
        }

    def _find_own(self) -> None:
        uncounted = self._uncounted
        self._own = {
            instruction: buffers
            if uncounted.isdisjoint(buffers)
            else [buffer for buffer in buffers if buffer not in uncounted]
            for instruction, buffers in self._held.items()
        }

    def _find_allocated(self) -> None:
        own, allocated = self._own, self._allocated
        tables: dict[Instruction, list[int]] = {}
        for instruction in self._held:
            operands = instruction.operands
            if len(operands) != 1:
                allocated[instruction] = [buffer for o in operands for buffer in own[o]]
                continue
            operand = operands[0]
            found = own[operand]
            if operand.shape.elements and instruction.opcode in _READS_TABLE_ONLY:
                if operand not in tables:  # many read elements of one tuple
                    tables[operand] = self._own_table(operand)
                found = tables[operand]
            allocated[instruction] = found

    def _find_released(self) -> None:
        """Note the buffers that begin with each instruction, and those of its result that begin in
        what it calls."""
        released = self._released = {}
        for buffer, (begin, calls) in enumerate(zip(self._begin, self._chain, strict=True)):
            if begin is not None and begin.opcode is not _PARAMETER:
                released.setdefault(begin, []).append(buffer)
            for call in calls:
                if call is not begin and buffer in self._held[call]:
                    released.setdefault(call, []).append(buffer)

    def _measure(self) -> None:
        """The state of each computation in its present order, with what lives below its call."""
        stack = [_Walk(self, self.flow.module.entry, ())]
        while stack:
            walk = stack[-1]
            callee = walk.to_next_callee()
            if callee is None:
                self.states[walk.computation].peak = walk.pressure.peak
                stack.pop()
            else:
                stack.append(_Walk(self, callee, tuple(sorted(walk.pressure.live))))

    def unmeasured(self, instruction: Instruction) -> Computation | None:
        """The first computation that an instruction calls and that has no state yet."""
        states = self.states
        return next((c for c in self._callees[instruction] if c not in states), None)


def _wrapped_roots(start: Instruction) -> list[Instruction]:
    """The operation that an async-start wraps, and the root of what that calls."""
    operation = start.called[0].root
    return [operation, *(callee.root for callee in operation.called)]


class _Walk:
    """A walk up through one computation."""

    __slots__ = ("computation", "life", "order", "pressure", "reached")

    def __init__(self, life: BufferLife, computation: Computation, live: tuple[int, ...]) -> None:
        life.states[computation] = PressureState(live)
        self.life = life
        self.computation = computation
        self.pressure = Pressure(life, live)
        self.order = list(computation.instructions)[::-1]
        self.reached = 0

    def to_next_callee(self) -> Computation | None:
        """Go up to the next call of what has no state yet; None at the top. O(buffers)."""
        life, order, move = self.life, self.order, self.pressure.move
        allocated, released, callees = life._allocated, life._released, life._callees
        for number in range(self.reached, len(order)):
            instruction = order[number]
            inside = 0
            if instruction in callees:
                callee = life.unmeasured(instruction)
                if callee is not None:
                    self.reached = number
                    return callee
                inside = life.peak_inside(instruction)
            move(allocated[instruction], released.get(instruction, _NONE), inside)
        return None
