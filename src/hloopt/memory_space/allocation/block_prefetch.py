"""Block prefetches: named values are loaded, one after the other, before all else is placed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hloopt.analysis.dataflow import Position
from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.allocations import Allocation, CopyAllocation
from hloopt.memory_space.allocation.allocator import Allocator
from hloopt.memory_space.allocation.conversions import Conversion, Conversions, bounds
from hloopt.memory_space.allocation.named_steps import NamedSteps
from hloopt.memory_space.allocation.scoped import largest_scoped_bytes
from hloopt.memory_space.allocation.values import AllocationValue, TimedUse, allocation_values
from hloopt.memory_space.heap.chunks import Chunk
from hloopt.memory_space.ledger.ledger import Ledger
from hloopt.memory_space.ledger.requirements import DEFAULT
from hloopt.memory_space.program import Program

_NOT_IN_BETWEEN = (Opcode.COPY, Opcode.SLICE, Opcode.DYNAMIC_SLICE)
"""Users that no block prefetch is made for: the ordinary procedure may convert them."""


@dataclass(slots=True)
class _Block:
    """A buffer to be loaded, for the uses that read it in alternate memory."""

    buffer: Buffer
    owners: list[AllocationValue]
    """In order of time; the first is where the value comes from, or the start is."""
    uses: list[TimedUse]
    ready: int
    """The time after which the load may start."""
    done_before: int
    conversion: Conversion | None = None
    call: CustomCallPrefetch | None = None

    @property
    def first(self) -> int:
        """The time of the first use."""
        return min(site.time for site in self.uses)

    @property
    def last(self) -> int:
        """The time until which the buffer is needed."""
        return max(site.time for site in self.uses)


@dataclass(slots=True)
class CustomCallPrefetch:
    """A start and a done in the text, and the times between which they are put."""

    start: Instruction
    done: Instruction
    start_after: int = -1
    done_before: int = -1


@dataclass(slots=True)
class BlockPrefetches:
    """Block prefetches, and the times of prefetches that custom calls in the text do.

    Starts follow each other in the order of first uses. A start is the earliest at which there is
    room until the last use: O(log instructions) questions to the heap per value.
    """

    allocator: Allocator
    limit: int = 0
    """The bytes of alternate memory below which all of them lie."""
    final: set[Buffer] = field(default_factory=set)
    """Buffers that have their place for good, in whichever memory."""
    sources: set[Buffer] = field(default_factory=set)
    """Buffers that loads read: their values are in default memory when they are defined."""
    custom_calls: list[CustomCallPrefetch] = field(default_factory=list)
    """The custom calls that have a place: they are to be put where it is theirs."""
    _loads: Conversions = field(default_factory=Conversions)
    _loading: set[Instruction] = field(default_factory=set)
    """Operations that become loads, and the custom calls that are: they read default memory."""
    _last_start: int = -1
    _times: dict[Computation, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, allocator: Allocator) -> BlockPrefetches:
        """Place them all. Raises PassRefused for unknown names, and demands that cannot be met.

        As long as it runs, the largest scoped memory is taken for the whole program.
        """
        result = cls(allocator)
        copies = allocator.copies
        program, options = copies.program, copies.options
        if not options.has_block_prefetches:
            return result
        scoped = largest_scoped_bytes(program, options)
        bytes_ = options.reserved_bytes_for_block_prefetches + scoped
        result.limit = min(copies.limit, bytes_)
        values = result._named_values()
        result._find_loads(values)
        reservation = copies.ledger.heap.take(Chunk(0, scoped), 0, program.end)
        result._prefetch([*result._custom_call_blocks(), *map(result._block_of, values)])
        copies.ledger.heap.give_back(reservation)
        allocator.settle(result.final)
        return result

    # -- what is to be loaded ---------------------------------------------------------------------

    def _named_values(self) -> list[int]:
        """The arrays at the positions that the options name, each once."""
        program, options = self._program, self.allocator.copies.options
        named = NamedSteps(program, "block_prefetched_positions")
        found: dict[int, None] = {}
        for name in options.block_prefetched_positions:
            for value in program.flow.held[named[name]]:
                if self.allocator.placer.allowed.buffer(program.buffers.of_value[value]):
                    found[value] = None
        return list(found)

    def _find_loads(self, values: Iterable[int]) -> None:
        """Find the operations to be converted; keep what they read in default memory."""
        program, options = self._program, self.allocator.copies.options
        buffers = [program.buffers.of_value[value] for value in values]
        found = Conversions.of(program, options, buffers, in_blocks=True)
        for operation, conversion in found.by_result.items():
            read = _read_by(program, operation)
            if not any(self.allocator.placer.colored.is_demanded(buffer) for buffer in read):
                self._loads.add(conversion)
                self._keep_in_default(read, operation)

    def _keep_in_default(self, buffers: Iterable[Buffer], reader: Instruction) -> None:
        """Let buffers be in default memory where they are defined, and where `reader` reads."""
        program, requirements = self._program, self.allocator.copies.ledger.requirements
        self._loading.add(reader)
        for buffer in buffers:
            for value in buffer.values:
                requirements.add(value, program.time(reader), DEFAULT)
                if buffer in self.sources:
                    continue
                for position in program.flow.positions(value):
                    if program.has(position.instruction):
                        requirements.add(value, program.time(position.instruction), DEFAULT)
            self.sources.add(buffer)

    def _block_of(self, value: int) -> _Block | None:
        """The prefetch of a value; None for one that is left to the ordinary procedure.

        A value that loops, calls or asynchronous operations hold is at several positions, and left.
        """
        program, allocator = self._program, self.allocator
        buffer = program.buffers.of_value[value]
        owners = allocation_values(program, buffer.values)
        if buffer.is_live_out or allocator.placer.colored.is_demanded(buffer) or len(owners) != 1:
            return None
        (owner,) = owners
        uses = [site for site in owner.uses if site.use.user not in self._loading]
        conversion = self._loads.by_result.get(owner.position.instruction)
        if conversion is not None and not allocator.placer.allowed.value(value):
            return None
        if allocator.placer.allowed.is_contiguous(owner.position) or not self._may_be_loaded(
            owner, uses
        ):
            return None
        ready, deadline = owner.time, program.end
        if conversion is not None:
            ready, deadline = bounds(program, [conversion.operation])
        return self._block(buffer, owners, uses, (ready, deadline), conversion)

    def _custom_call_blocks(self) -> Iterator[_Block | None]:
        """The prefetches that custom calls do; None for one that is left as it is."""
        program = self._program
        named = NamedSteps(program, "custom_call_prefetches")
        pairs = self.allocator.copies.options.custom_call_prefetches
        calls = [CustomCallPrefetch(named[start], named[done]) for _, start, done in pairs]
        for call, (source, _, _) in zip(calls, pairs, strict=True):
            if named[source] not in call.start.operands:
                raise PassRefused(
                    f"custom_call_prefetches: '%{call.start.name}' does not read '%{source}'",
                    help="give the source, the start and the done of each prefetch",
                )
            buffer = program.buffers.of_value[program.flow.held[call.done][0]]
            read = {*_read_by(program, call.start), *_read_by(program, call.done)} - {buffer}
            if any(self.allocator.placer.colored.is_demanded(b) for b in read):
                continue
            for reader in (call.start, call.done):
                self._keep_in_default(read, reader)
            yield self._block_of_call(call, buffer)

    def _block_of_call(self, call: CustomCallPrefetch, buffer: Buffer) -> _Block | None:
        program = self._program
        owners = allocation_values(program, buffer.values)
        starts = [owner for owner in owners if owner.position.instruction is call.start]
        later = [owner for owner in owners if owner not in starts]
        uses = [site for owner in later for site in owner.uses]
        if (
            len(starts) != 1
            or min(owner.time for owner in later) < program.time(call.done)
            or buffer.is_live_out
            or not self.allocator.placer.allowed.buffer(buffer)
            or not _is_pair(call)
            or not self._may_be_loaded(starts[0], uses)
        ):
            return None
        limits = bounds(program, [call.start, call.done], call.start.users)
        return self._block(buffer, [*starts, *later], uses, limits, call=call)

    def _block(
        self,
        buffer: Buffer,
        owners: list[AllocationValue],
        uses: list[TimedUse],
        limits: tuple[int, int],
        conversion: Conversion | None = None,
        call: CustomCallPrefetch | None = None,
    ) -> _Block:
        ready, deadline = limits
        done_before = min([deadline, *map(self.allocator.placer.latest_prefetch, uses)])
        return _Block(buffer, owners, uses, ready, done_before, conversion, call)

    def _may_be_loaded(self, owner: AllocationValue, uses: list[TimedUse]) -> bool:
        """Whether there are uses, all of which may read what is loaded, outside of branches."""
        in_branch = _is_in_branch(self._program, owner.computation)
        return bool(uses) and not in_branch and all(map(self._may_read_copy, uses))

    def _may_read_copy(self, site: TimedUse) -> bool:
        is_allowed = self.allocator.placer.allowed.use(site.use)
        is_default = self.allocator.placer.colored.colorings.uses.get(site.use) is False
        return is_allowed and not is_default and site.use.user.opcode not in _NOT_IN_BETWEEN

    # -- where it is loaded -----------------------------------------------------------------------

    def _prefetch(self, found: Iterable[_Block | None]) -> None:
        blocks = [block for block in found if block is not None]
        blocks.sort(key=lambda block: (block.first, block.owners[0].value))
        for block in blocks:
            self.final.add(block.buffer)
            start = self._earliest_start(block, max(block.ready, self._last_start))
            if start is None:
                if self.allocator.placer.colored.is_demanded(block.buffer):
                    raise self.allocator.placer.colored.not_satisfied(block.buffer)
                continue
            self._last_start = start
            offset = self._ledger.heap.best_offset(block.buffer.size, start + 1, block.last)
            chunk = Chunk(offset, block.buffer.size)
            self._ledger.take(chunk, start + 1, block.last, copied=True)
            self._ledger.add_copy(start, block.done_before, 0.0, out=False)
            if block.call is None:
                self._load(block, chunk, start)
            else:
                self._move(block, block.call, chunk, start)
            self.allocator.add(block.owners)

    def _earliest_start(self, block: _Block, earliest: int) -> int | None:
        """The first time, in the computation of the value, after which it can be loaded.

        There is more room, and there are fewer copies beside it, the later it starts.
        """
        ledger, size, last, done = self._ledger, block.buffer.size, block.last, block.done_before
        most = self.allocator.copies.options.max_outstanding_block_prefetches

        def fits(start: int) -> bool:
            if ledger.prefetches.outstanding.overlapping(start + 1, done) >= most:
                return False
            return ledger.heap.best_offset(size, start + 1, last) + size <= self.limit

        times = self._times_in(block.owners[0].computation)
        first, behind = bisect_left(times, earliest), bisect_left(times, done)
        found = bisect_left(times, True, first, behind, key=fits) if first < behind else behind
        return times[found] if found < behind else None

    def _load(self, block: _Block, chunk: Chunk, start: int) -> None:
        """Load a value by a copy, or by the operation that makes it."""
        (owner,), conversion = block.owners, block.conversion
        end = self._program.end  # nothing frees what is in default memory
        if conversion is None:
            source = Allocation(owner.position, None, owner.time, end)
            owner.sequence.append(source)
        else:
            loaded = Position(conversion.operation.operands[conversion.operand], 0)
            source = Allocation(loaded, None, block.ready, end)
        made = CopyAllocation(
            owner.position,
            chunk,
            start,
            block.last,
            source=source,
            start_after=start,
            done_before=block.done_before,
            uses=[site.use for site in block.uses],
        )
        if conversion is not None:
            made.operation, made.operand = conversion.operation, conversion.operand
        owner.sequence.append(made)

    def _move(self, block: _Block, call: CustomCallPrefetch, chunk: Chunk, start: int) -> None:
        """Let custom calls load at their time; all that shares the buffer is in one place."""
        call.start_after, call.done_before = start, block.done_before
        self.custom_calls.append(call)
        for owner in block.owners:
            uses = [site.use for site in owner.uses]
            owner.sequence.append(Allocation(owner.position, chunk, start, block.last, uses))

    # -- small things -----------------------------------------------------------------------------

    @property
    def _program(self) -> Program:
        return self.allocator.copies.program

    @property
    def _ledger(self) -> Ledger:
        return self.allocator.copies.ledger

    def _times_in(self, computation: Computation) -> list[int]:
        if not self._times:
            for time, step in enumerate(self._program.schedule.steps):
                self._times.setdefault(step.parent, []).append(time)
        return self._times[computation]


def _read_by(program: Program, operation: Instruction) -> list[Buffer]:
    """The buffers of what an operation reads, each once."""
    of_value, held = program.buffers.of_value, program.flow.held
    found = {of_value[value]: None for o in operation.operands for value in held[o]}
    return list(found)


def _is_pair(call: CustomCallPrefetch) -> bool:
    """Whether only the done reads what the start makes, by elements of it."""
    for user in call.start.users:
        if user.opcode is not Opcode.GET_TUPLE_ELEMENT or set(user.users) - {call.done}:
            return False
    return True


def _is_in_branch(program: Program, computation: Computation) -> bool:
    """Whether a computation runs inside a branch of a conditional. O(nesting)."""
    caller = program.schedule.first_call.get(computation)
    while caller is not None:
        if caller.opcode is Opcode.CONDITIONAL:
            return True
        caller = program.schedule.first_call.get(caller.parent)
    return False
