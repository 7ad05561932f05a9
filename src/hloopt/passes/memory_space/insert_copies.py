"""Put what an assignment decided into the module: copies, and uses that read them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from hloopt.analysis.dataflow import Position, Use, slots_of
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.memory_space.allocation.allocations import (
    Allocation,
    CopyAllocation,
    MirroredAllocation,
    ParentAllocation,
)
from hloopt.memory_space.allocation.allowed import HELD_UNTIL_DONE
from hloopt.memory_space.allocation.values import AllocationValue, is_bitcast_before, origin
from hloopt.memory_space.heap.chunks import Part
from hloopt.memory_space.program import Program
from hloopt.passes.async_ops.async_pairs import AsyncPair, done_of, wrap
from hloopt.passes.rewriting.loop_elements import pass_through

CONTEXT = array_shape("u32", ())
"""The third element of a copy-start."""
SLICE_CONTEXT = array_shape("s32", ())
"""The context of a slice's async-start."""


@dataclass(slots=True)
class CopyPair:
    """A copy-start and its copy-done, with the times between which they have to stand."""

    start: Instruction
    done: Instruction
    start_after: int
    done_before: int
    is_prefetch: bool


@dataclass(slots=True)
class CopyInserter:
    """Inserts the copies of allocations and lets the uses read what they make."""

    program: Program
    pairs: list[CopyPair] = field(default_factory=list)
    parts: list[tuple[Instruction, CopyAllocation, Part]] = field(default_factory=list)
    """The dones of slices, each with its part of the chunk of an allocation."""
    _sources: dict[Allocation, Instruction] = field(default_factory=dict)
    _elements: dict[Position, Instruction] = field(default_factory=dict)
    _readers: dict[Instruction, dict[int, Instruction]] = field(default_factory=dict)
    _reads: dict[tuple[Instruction, int], dict[int, Instruction]] = field(default_factory=dict)

    def insert(self, values: Iterable[AllocationValue]) -> None:
        """Insert all copies that are read, and rewire. O(allocations + slots of tuples)."""
        rewired = [(stay, _rewired(stay)) for value in values for stay in value.sequence]
        for allocation, uses in rewired:
            if not uses and not _is_kept(allocation):
                continue
            made = self.instruction_of(allocation)
            for use in uses:
                read = self._as_read(use, made)
                self._reads.setdefault((use.user, use.operand), {})[use.slot] = read
        for (user, number), slots in self._reads.items():
            user.replace_operand(number, self._replaced(user.operands[number], slots))

    def _as_read(self, use: Use, value: Instruction) -> Instruction:
        """A value as a use reads it: behind a bitcast where the use has one before it.

        Before layout assignment layouts of one value differ and mean nothing.
        """
        if not is_bitcast_before(use):
            return value
        read = Position(use.user.operands[use.operand], use.slot)
        return in_shape(value, self.program.shape(read))

    def instruction_of(self, allocation: Allocation) -> Instruction:
        """The instruction that holds an allocation's value, alone; copies are made when asked."""
        found = self._sources.get(allocation)
        if found is not None:
            return found
        match allocation:
            case CopyAllocation():
                return self._copy(allocation)
            case MirroredAllocation():
                return self.instruction_of(allocation.original)
            case ParentAllocation():
                outside = self.instruction_of(allocation.outside)
                found = pass_through(allocation.loop.instruction, outside)
                self._sources[allocation] = found
                return found
        return self._element(allocation.position)

    def holder_of(self, allocation: Allocation) -> Position | None:
        """The position that holds an allocation's value; None where nothing needed its copy."""
        if isinstance(allocation, CopyAllocation):
            done = self._sources.get(allocation)
            if done is not None and allocation.slices and done.opcode is Opcode.BITCAST:
                done = done.operands[0]
            return None if done is None else Position(done, 0)
        return allocation.position

    def _copy(self, allocation: CopyAllocation) -> Instruction:
        source = self.instruction_of(allocation.source)
        parent = source.parent
        if allocation.operation is not None:
            return self._converted(allocation, allocation.operation, source)
        if allocation.slices:
            return self._sliced(allocation, source)
        shape = tuple_shape((source.shape, source.shape, CONTEXT))
        start = parent.add(Opcode.COPY_START, shape, [source])
        if allocation.cross_program_index is not None:
            rank = str(allocation.cross_program_index)
            start.set_attribute("cross_program_prefetch_index", rank)
        done = parent.add(Opcode.COPY_DONE, source.shape, [start])
        self._sources[allocation] = done
        self.pairs.append(
            CopyPair(
                start,
                done,
                allocation.start_after,
                allocation.done_before,
                allocation.chunk is not None,
            )
        )
        return done

    def _converted(
        self, allocation: CopyAllocation, operation: Instruction, source: Instruction
    ) -> Instruction:
        """Make an operation asynchronous, on what holds its operand in default memory."""
        number = allocation.operand
        operation.replace_operand(number, in_shape(source, operation.operands[number].shape))
        pair = make_async(operation)
        self._sources[allocation] = pair.done
        self.pairs.append(
            CopyPair(pair.start, pair.done, allocation.start_after, allocation.done_before, True)
        )
        operation.drop_control_dependencies()
        operation.replace_all_uses_with(pair.done)
        self._elements[allocation.position] = pair.done
        operation.parent.remove(operation)
        return pair.done

    def _sliced(self, allocation: CopyAllocation, source: Instruction) -> Instruction:
        """Copy a value in slices, each by an async-start, and put them together."""
        whole = source
        parts = [one.slice for one in allocation.slices]
        if parts[0].shape.type_name != source.shape.type_name:  # slices of bytes
            size = sum(one.size for one in parts)
            whole = in_shape(source, array_shape("s8", (size,)))
        dones = []
        for one in allocation.slices:
            bounds = ",".join(f"[{low}:{high}]" for low, high in one.slice.bounds)
            piece = source.parent.add(
                Opcode.SLICE, one.slice.shape, [whole], attributes={"slice": f"{{{bounds}}}"}
            )
            pair = make_async(piece)
            source.parent.remove(piece)
            self.pairs.append(
                CopyPair(pair.start, pair.done, one.start_after, allocation.done_before, True)
            )
            dones.append(pair.done)
            self.parts.append((pair.done, allocation, one.part))
        made = source.parent.add(
            Opcode.CUSTOM_CALL,
            whole.shape,
            dones,
            attributes={"custom_call_target": '"ConcatBitcast"'},
        )
        found = self._sources[allocation] = in_shape(made, source.shape)
        return found

    def _element(self, position: Position) -> Instruction:
        """The instruction that holds what is at a position, made of get-tuple-elements."""
        instruction = position.instruction
        found = self._elements.get(position)
        if found is None and not position.slot:
            return instruction
        if found is None:
            found = instruction
            for number in slots_of(instruction.shape).indices[position.slot]:
                found = self._part(found, number)
            self._elements[position] = found
        return found

    def _part(self, whole: Instruction, number: int) -> Instruction:
        """An element of a tuple: the operand that made it, a reader there is, or a new one.

        A root is no such reader: it may have to read a copy of the element.
        """
        if whole.opcode is Opcode.TUPLE:
            return whole.operands[number]
        readers = self._readers.get(whole)
        if readers is None:
            readers = self._readers[whole] = {
                user.tuple_index: user
                for user in whole.users
                if user.opcode is Opcode.GET_TUPLE_ELEMENT and not user.is_root
            }
        if number not in readers:
            readers[number] = read_element(whole, number)
        return readers[number]

    def _replaced(self, old: Instruction, slots: dict[int, Instruction]) -> Instruction:
        """An instruction that holds the values of `old`, others at some slots.

        O(slots of the tuples on the path).
        """
        if 0 in slots:
            return slots[0]
        starts = slots_of(old.shape).element_starts
        inner: dict[int, dict[int, Instruction]] = {}
        for slot, value in slots.items():
            number = bisect_right(starts, slot) - 1
            inner.setdefault(number, {})[slot - starts[number]] = value
        elements = [self._part(old, number) for number in range(len(starts) - 1)]
        for number, changed in inner.items():
            elements[number] = self._replaced(elements[number], changed)
        return make_tuple(old.parent, elements)


def make_async(operation: Instruction) -> AsyncPair:
    """The start and done of a copy or a slice."""
    if operation.opcode is not Opcode.COPY:
        return wrap(operation, context=(SLICE_CONTEXT,))
    shape = tuple_shape((operation.shape, operation.operands[0].shape, CONTEXT))
    start = operation.parent.add(Opcode.COPY_START, shape, operation.operands)
    return AsyncPair(start, done_of(operation, start, Opcode.COPY_DONE))


def _rewired(allocation: Allocation) -> list[Use]:
    """The uses that have to read what holds the allocation in place of what they read.

    A value that a loop, a call or a start passes on is one value with what it reads, and may lie
    elsewhere from then on; what reads it where it was defined, or arrived, is left alone.
    """
    if isinstance(allocation, CopyAllocation | MirroredAllocation | ParentAllocation):
        return allocation.uses
    if allocation.position.instruction.opcode in HELD_UNTIL_DONE:
        return []  # only the done may read it
    return [
        use
        for use in allocation.uses
        if (found := origin(use)) != allocation.position
        and found.instruction.opcode not in HELD_UNTIL_DONE
    ]


def _is_kept(allocation: Allocation) -> bool:
    """Whether a copy is made though no use of this run reads it."""
    if not isinstance(allocation, CopyAllocation):
        return False
    return allocation.is_for_next_run or allocation.operation is not None


def in_shape(value: Instruction, shape: Shape) -> Instruction:
    """A value in another shape of as many bytes."""
    if value.shape is shape:
        return value
    return value.parent.add(Opcode.BITCAST, shape, [value])


def remove_unread(computations: Iterable[Computation]) -> None:
    """Remove tuples, elements and bitcasts that nothing reads. Linear."""
    trivial = (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST)
    for computation in computations:
        waiting = [i for i in computation.instructions if i.opcode in trivial]
        while waiting:
            instruction = waiting.pop()
            if instruction.users or instruction.is_root or instruction not in computation:
                continue
            operands = instruction.operands
            computation.remove(instruction)
            waiting += [o for o in operands if o.opcode in trivial]
