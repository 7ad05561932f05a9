"""XLA's buffer assignment: which allocation every buffer of a module lies in, and where."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.analysis.calls import reachable_from_entry
from hloopt.analysis.dataflow import NOTHING, Dataflow
from hloopt.analysis.flat_schedule import FlatSchedule, Orders
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.attributes.values import Alias
from hloopt.ir.ordering import computation_post_order, post_order_before_printing
from hloopt.memory.allocations import Allocation, Occupation, ParameterPart
from hloopt.memory.backends import CPU, Backend
from hloopt.memory.buffers import Buffer, Buffers
from hloopt.memory.heap.events import HeapTrace, trace_heap
from hloopt.memory.heap.packing import pack
from hloopt.memory.live_ranges import LiveRanges
from hloopt.memory.overwrite import Overwriting


@dataclass(slots=True)
class BufferAssignment:
    """The allocations of a module as XLA makes them from its schedule.

    Parameters, constants, outputs and pointer tables first, each buffer in an allocation of its
    own or in one that has room; what is left are temporaries, packed into one allocation per
    memory space by simulating the heap.
    """

    flow: Dataflow
    schedule: FlatSchedule
    buffers: Buffers
    ranges: LiveRanges
    backend: Backend
    allocations: list[Allocation] = field(default_factory=list)
    traces: dict[int, HeapTrace] = field(default_factory=dict)
    """The history of the heap, per color."""

    @classmethod
    def of(
        cls,
        module: Module,
        *,
        orders: Orders | None = None,
        backend: Backend = CPU,
        packs: bool = True,
    ) -> BufferAssignment:
        """Assign by the module's schedule, or by `orders`. Near-linear in the module.

        Without `packs` temporaries get no places in their heap.

        Raises HloVerifyError for a module whose shapes, aliases or calls do not fit together.
        """
        is_printed = module.is_scheduled and backend.assigned_before_printing
        flow = Dataflow.of(module, before_printing=is_printed)
        schedule = FlatSchedule.of(module, orders)
        buffers = Buffers.of(flow, backend.colors, sizes=backend.sizes)
        return cls._of(flow, schedule, buffers, backend, packs=packs)

    @classmethod
    def _of(
        cls,
        flow: Dataflow,
        schedule: FlatSchedule,
        buffers: Buffers,
        backend: Backend,
        *,
        packs: bool = True,
    ) -> BufferAssignment:
        ranges = LiveRanges.of(flow, schedule, buffers)
        result = cls(flow, schedule, buffers, ranges, backend)
        _Assigner(result, packs=packs).run()
        return result

    def with_aliases(self, aliases: tuple[Alias, ...]) -> BufferAssignment:
        """The assignment if these were the module's input_output_alias. Near-linear.

        Raises HloVerifyError for an alias of what does not exist.
        """
        buffers = Buffers.of(
            self.flow, self.backend.colors, aliases=aliases, sizes=self.backend.sizes
        )
        return self._of(self.flow, self.schedule, buffers, self.backend)

    def counts_in(self, color: int, space: int) -> bool:
        """Whether what has a color counts in a memory space. Main memory, 0, has all that the
        backend does not keep apart."""
        return color == space if space else color not in self.backend.apart

    def traces_in(self, space: int) -> list[HeapTrace]:
        """The histories of the heaps that count in a memory space."""
        return [trace for color, trace in self.traces.items() if self.counts_in(color, space)]

    def spaces(self) -> list[int]:
        """The memory spaces in which anything lies, main memory first. O(allocations)."""
        return sorted({0, *(a.color for a in self.allocations if a.size)})

    def allocation_of(self) -> dict[int, Allocation]:
        """The allocation of each value that has one. O(values)."""
        return {value: a for a in self.allocations for value in a.offsets}


class _Assigner:
    def __init__(self, assignment: BufferAssignment, *, packs: bool) -> None:
        self.assignment = assignment
        self.packs = packs
        self.flow = assignment.flow
        self.buffers = assignment.buffers
        self.ranges = assignment.ranges
        self.overwriting = Overwriting(
            self.flow, self.buffers.in_place, assignment.backend.may_overwrite
        )
        self.allocation_of: dict[int, Allocation] = {}  # by number of the buffer
        self.occupied: dict[Allocation, Occupation] = {}
        self.reusable: list[Occupation] = []
        self.roomy: dict[Occupation, None] = {}
        """The reusable allocations with room for more than a moment, in the same order."""
        self.temporaries: list[Buffer] = []
        entry = self.flow.module.entry
        self.entry = entry
        self.aliased = {(a.parameter, a.parameter_index) for a in self.buffers.aliases}
        self.end = assignment.schedule.spans[entry][1]

    def run(self) -> None:
        assignment = self.assignment
        scope = self.flow.scope
        by_definer: dict[Computation, list[Buffer]] = {}
        for buffer in self.buffers.all:
            computation = self.flow.definer[buffer.values[0]].parent
            by_definer.setdefault(computation, []).append(buffer)
        post_order = (
            post_order_before_printing
            if assignment.backend.assigned_before_printing
            else computation_post_order
        )
        ordered = [c for c in post_order(self.flow.module) if c in scope.orders]
        numbers = _positions([c for c in reversed(ordered) if c in scope.is_global], scope.orders)
        global_buffers = [b for c in scope.is_global for b in by_definer.get(c, ())]
        for buffer in self._sorted(global_buffers, numbers):
            self._assign(buffer)
        self._simulate_heap()
        self._thread_local(by_definer, ordered)
        assignment.allocations = _temporaries_last(assignment.allocations, assignment.backend)

    def _sorted(self, buffers: list[Buffer], numbers: dict[Instruction, int]) -> list[Buffer]:
        definer = self.flow.definer
        return sorted(
            buffers,
            key=lambda b: (
                -b.size,
                not b.is_live_out,
                min(numbers[definer[v]] for v in b.values if definer[v] in numbers),
                b.number,
            ),
        )

    # -- one buffer after the other -------------------------------------------------------------

    def _assign(self, buffer: Buffer) -> None:
        allocation = self._given(buffer)
        if allocation is not None:
            self._place(buffer, allocation)
            if allocation.is_aliased:
                self._offer(allocation)
            return
        if any(self.flow.shape(value).is_tuple for value in buffer.values):
            self._place(buffer, self._new(buffer, is_tuple=True))
            return
        allocation = self._of_operand(buffer) or self._with_room(buffer)
        if allocation is not None:
            self._place(buffer, allocation)
        elif buffer.is_live_out:
            allocation = self._new(buffer)
            self._place(buffer, allocation)
            self._offer(allocation)
        else:
            self.temporaries.append(buffer)

    def _offer(self, allocation: Allocation) -> None:
        """Let later buffers use what room the allocation has."""
        occupied = self.occupied[allocation]
        self.reusable.append(occupied)
        if occupied.widest:
            self.roomy[occupied] = None

    def _given(self, buffer: Buffer) -> Allocation | None:
        """A new allocation if the buffer is a constant or a parameter: its first such value."""
        for value in buffer.values:
            instruction = self.flow.definer[value]
            if instruction.opcode is Opcode.CONSTANT:
                return self._new(buffer, is_constant=True)
            if instruction.opcode is Opcode.PARAMETER and instruction.parent is self.entry:
                part = ParameterPart(instruction.parameter_number, self.flow.index(value))
                return self._new(buffer, parameter=part, is_aliased=part in self.aliased)
        return None

    def _new(
        self,
        buffer: Buffer,
        *,
        parameter: ParameterPart | None = None,
        is_aliased: bool = False,
        is_constant: bool = False,
        is_tuple: bool = False,
    ) -> Allocation:
        allocation = Allocation(
            buffer.size,
            buffer.color,
            parameter=parameter,
            is_aliased=is_aliased,
            is_constant=is_constant,
            is_tuple=is_tuple,
        )
        self.assignment.allocations.append(allocation)
        self.occupied[allocation] = Occupation(allocation)
        return allocation

    def _place(self, buffer: Buffer, allocation: Allocation) -> None:
        self.allocation_of[buffer.number] = allocation
        allocation.is_live_out |= buffer.is_live_out
        allocation.offsets.update(dict.fromkeys(buffer.values, 0))
        if allocation.is_reusable:
            occupied = self.occupied[allocation]
            for value in self.ranges.in_order(buffer.values):
                occupied.add(self.ranges.start[value], self.ranges.end[value], value)
            occupied.measure(self.end)
            if not occupied.widest:
                self.roomy.pop(occupied, None)

    def _of_operand(self, buffer: Buffer) -> Allocation | None:
        """The allocation of an operand of one of its instructions, if it accepts the buffer."""
        flow, seen = self.flow, set()
        for value in buffer.values:
            if flow.slot[value]:
                continue
            for operand in flow.definer[value].operands:
                for source in flow.members(flow.held[operand][:1]):
                    allocation = self._allocation(source)
                    if allocation is None or allocation in seen:
                        continue
                    seen.add(allocation)
                    if self._accepts(allocation, buffer):
                        return allocation
        return None

    def _allocation(self, value: int) -> Allocation | None:
        if value == NOTHING:
            return None
        return self.allocation_of.get(self.buffers.of_value[value].number)

    def _with_room(self, buffer: Buffer) -> Allocation | None:
        """The newest of the reusable allocations that accepts the buffer."""
        ranges = self.ranges
        first = buffer.values[0]
        start, end = ranges.start[first], ranges.end[first]
        length = max(ranges.end[value] - ranges.start[value] for value in buffer.values)
        candidates = self.roomy if length else self.reusable
        fitting = [occupied for occupied in candidates if occupied.widest >= length]
        for occupied in reversed(fitting):
            if not occupied.is_in_use(start, end) and self._accepts(occupied.allocation, buffer):
                return occupied.allocation
        return None

    # -- when an allocation accepts a buffer ------------------------------------------------------

    def _accepts(self, allocation: Allocation, buffer: Buffer) -> bool:
        """Whether a buffer may lie in an allocation; its size fits: larger buffers come first."""
        if not allocation.is_reusable or allocation.color != buffer.color:
            return False
        if buffer.is_live_out and buffer.size != allocation.size:
            return False
        return all(self._fits(allocation, value) for value in buffer.values)

    def _fits(self, allocation: Allocation, value: int) -> bool:
        ranges, occupied = self.ranges, self.occupied[allocation]
        for number in occupied.touching(ranges.start[value], ranges.end[value]):
            other = occupied.values[number]
            if not (self._may_follow(other, value) or self._may_follow(value, other)):
                return False
        return not self._copies_from(allocation, value)

    def _may_follow(self, earlier: int, later: int) -> bool:
        ranges = self.ranges
        if ranges.end[earlier] != ranges.start[later]:
            return ranges.end[earlier] < ranges.start[later]
        return self.overwriting.may(earlier, ranges.last_position[earlier], later)

    def _copies_from(self, allocation: Allocation, value: int) -> bool:
        """Whether `value` is a copy of something that has a value in the allocation."""
        instruction = self.flow.definer[value]
        if instruction.opcode is not Opcode.COPY:
            return False
        held = self.flow.members(self.flow.held[instruction.operands[0]])
        return any(source in allocation.offsets for source in held)

    # -- temporaries and thread-local buffers -----------------------------------------------------

    def _simulate_heap(self) -> None:
        assignment = self.assignment
        by_color: dict[int, list[int]] = {}
        for buffer in self.temporaries:
            by_color.setdefault(buffer.color, []).extend(buffer.values)
        for color, values in sorted(by_color.items()):
            trace = trace_heap(dict.fromkeys(values), self.buffers, self.ranges, self.overwriting)
            assignment.traces[color] = trace
            if not self.packs:
                continue
            packing = pack(trace, assignment.backend.sizes.alignment)
            allocation = Allocation(packing.size, color, is_heap=True, heap_size=packing.size)
            allocation.offsets = {v: packing.offsets[v] for v in values if v in packing.offsets}
            assignment.allocations.append(allocation)

    def _thread_local(
        self, by_definer: dict[Computation, list[Buffer]], ordered: list[Computation]
    ) -> None:
        """The buffers of reducers, comparators and the like; none of a fusion's body."""
        scope = self.flow.scope
        reached = reachable_from_entry(self.flow.module)
        computations = [
            c
            for c in reversed(ordered)
            if c in reached and c not in scope.is_global and not c.is_fusion
        ]
        buffers = [b for c in computations for b in by_definer.get(c, ())]
        for buffer in self._sorted(buffers, _positions(computations, scope.orders)):
            is_constant = any(self.flow.definer[v].opcode is Opcode.CONSTANT for v in buffer.values)
            self.assignment.allocations.append(
                Allocation(
                    buffer.size,
                    buffer.color,
                    is_constant=is_constant,
                    is_thread_local=not is_constant,
                    offsets=dict.fromkeys(buffer.values, 0),
                )
            )


def _positions(
    computations: list[Computation], orders: dict[Computation, list[Instruction]]
) -> dict[Instruction, int]:
    instructions = [i for computation in computations for i in orders[computation]]
    return {instruction: number for number, instruction in enumerate(instructions)}


def _temporaries_last(allocations: list[Allocation], backend: Backend) -> list[Allocation]:
    """XLA's final order: temporaries at the end, those of one color made one.

    A temporary found from the front changes places with what else is found from the back.
    """
    result = list(allocations)
    front, back = 0, len(result) - 1
    while True:
        while front <= back and not _is_temporary(result[front]):
            front += 1
        while front <= back and _is_temporary(result[back]):
            back -= 1
        if front >= back:
            break
        result[front], result[back] = result[back], result[front]
    merged: dict[int, Allocation] = {}
    for allocation in result[front:]:
        into = merged.setdefault(allocation.color, allocation)
        if into is not allocation:
            _append(into, allocation, backend.sizes.alignment)
            into.color = into.color or backend.temporary_color
    return [*result[:front], *merged.values()]


def _is_temporary(allocation: Allocation) -> bool:
    return (
        allocation.parameter is None
        and not allocation.is_live_out
        and not allocation.is_thread_local
        and not allocation.is_constant
    )


def _append(into: Allocation, allocation: Allocation, alignment: int) -> None:
    base = -(-into.size // alignment) * alignment
    into.offsets.update({v: base + offset for v, offset in allocation.offsets.items()})
    into.size = base + allocation.size
    into.is_heap |= allocation.is_heap
    into.heap_size += allocation.heap_size
