"""Scoped memory: bytes that an instruction uses for itself while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hloopt.ir import Instruction
from hloopt.memory_space.allocation.allocations import CopyAllocation
from hloopt.memory_space.allocation.values import AllocationValue
from hloopt.memory_space.heap.chunks import Chunk, Reservation
from hloopt.memory_space.ledger.ledger import Ledger
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import Program


@dataclass(slots=True)
class ScopedMemory:
    """The chunks of instructions that ask for scoped memory, each at its own time only."""

    chunks: dict[Instruction, Chunk] = field(default_factory=dict)
    reservations: dict[Instruction, Reservation] = field(default_factory=dict)
    after_program: Chunk | None = None
    """The chunk that is needed when the program is over."""

    @classmethod
    def of(cls, program: Program, options: MemorySpaceOptions, ledger: Ledger) -> ScopedMemory:
        """Take [0, bytes) for each of them, in an order that halves the schedule breadth first."""
        result = cls()
        steps = program.schedule.steps
        if options.reserved_scoped_memory:
            for time in _halving(len(steps)):
                size = scoped_bytes(steps[time], options)
                if size:
                    chunk = result.chunks[steps[time]] = Chunk(0, size)
                    result.reservations[steps[time]] = ledger.take(chunk, time, time)
                    if options.allocate_reserved_scoped_memory_at_same_offset:
                        ledger.heap.unite(next(iter(result.chunks.values())), chunk)
        if size := options.post_module_scoped_alternate_memory_size_in_bytes:
            result.after_program = Chunk(0, size)
            ledger.take(result.after_program, program.end, program.end)
        ledger.keep()
        return result

    def ask_again(
        self, options: MemorySpaceOptions, ledger: Ledger, values: Iterable[AllocationValue]
    ) -> None:
        """Let instructions have what they ask for now that some values have their places."""
        stays = [stay for value in values for stay in value.sequence if stay.chunk is not None]
        read = {use.user for stay in stays for use in stay.uses}
        made = {s.position.instruction for s in stays if not isinstance(s, CopyAllocation)}
        for instruction, reservation in self.reservations.items():
            size = scoped_bytes(
                instruction,
                options,
                operands_in_alternate=instruction in read,
                output_in_alternate=instruction in made,
            )
            ledger.heap.resize(reservation, min(size, reservation.chunk.size))

    def expand(self, ledger: Ledger, limit: int) -> None:
        """Let each chunk of an instruction be the free space around it, or a gap that is larger.

        O(reservations) each.
        """
        for instruction, reservation in self.reservations.items():
            time, old = reservation.start, reservation.chunk
            ledger.heap.give_back(reservation)
            gaps = ledger.heap.gaps(time, limit)
            offset, size = max(
                gaps, key=lambda gap: (gap[1], gap[0] <= old.offset < sum(gap)), default=(0, 0)
            )
            chunk = Chunk(offset, size) if 0 < old.size < size else old
            self.chunks[instruction] = chunk
            self.reservations[instruction] = ledger.take(chunk, time, time)
        ledger.keep()


def largest_scoped_bytes(program: Program, options: MemorySpaceOptions) -> int:
    """The most bytes that an instruction of the program asks for. O(instructions · rules)."""
    if not options.reserved_scoped_memory:
        return 0
    return max((scoped_bytes(step, options) for step in program.schedule.steps), default=0)


def scoped_bytes(
    instruction: Instruction,
    options: MemorySpaceOptions,
    *,
    operands_in_alternate: bool = False,
    output_in_alternate: bool = False,
) -> int:
    """The bytes that an instruction asks for: rules that match it add up."""
    total = 0
    for rule in options.reserved_scoped_memory:
        if (
            (rule.names is None or instruction.name in rule.names)
            and (rule.opcodes is None or instruction.opcode.value in rule.opcodes)
            and not (rule.no_operand_in_alternate_memory and operands_in_alternate)
            and not (rule.no_output_in_alternate_memory and output_in_alternate)
        ):
            total += rule.bytes
    return total


def _halving(count: int) -> Iterator[int]:
    """The numbers below `count`, middles of ever smaller parts first."""
    parts = [(0, count)]
    for first, behind in parts:  # grows
        if first < behind:
            middle = (first + behind) // 2
            yield middle
            parts += [(first, middle), (middle + 1, behind)]
