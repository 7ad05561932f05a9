"""The values that an iteration of an unrolled loop defines or reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from hloopt.analysis.dataflow import NOTHING, Position, Use, slots_of
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.program import TRIVIAL, Program


class ValueKind(Enum):
    """Kinds of values by how the iterations share them."""

    TEMPORARY = auto()
    """Defined in each iteration, and not needed any more when the next one defines its own."""
    LOOP_CARRIED = auto()
    """Defined in each iteration, and needed until the next one defines its own, or longer."""
    PINNED = auto()
    """Defined before, and read in each iteration at the same places."""
    PREFETCH = auto()
    """Defined before, and read in one iteration."""
    OTHER = auto()
    """Shared in another way: nothing is planned for it, as for a loop-carried value."""


@dataclass(slots=True, eq=False)
class LoopValue:
    """The values of a buffer, by the indices of an iteration at which they are defined and read."""

    buffer: Buffer
    kind: ValueKind = ValueKind.OTHER
    positions: list[tuple[int, Position]] = field(default_factory=list)
    uses: list[tuple[int, Use]] = field(default_factory=list)
    next_uses: list[tuple[int, Use]] = field(default_factory=list)
    """The uses in the next iteration, by their indices there."""
    savings: float = 0
    """Bytes of default memory that one iteration does not move if it is in alternate memory."""

    @property
    def size(self) -> int:
        return self.buffer.size

    @property
    def savings_per_byte(self) -> float:
        return self.savings / max(self.size, 1)

    @property
    def first_use(self) -> int:
        return self.uses[0][0]

    @property
    def last_use(self) -> int:
        return self.uses[-1][0]


def loop_values(
    program: Program,
    costs: MemorySpaceCosts,
    start: int,
    end: int,
    is_allowed: Callable[[Buffer], bool],
) -> list[LoopValue]:
    """The values of the iteration from `start` to before `end`, what saves most per byte first.

    Without those that the iteration before defines. Equal savings: in order of the buffers.
    O(uses of the values · log).
    """
    found = []
    for buffer in _buffers(program, start, end):
        if is_allowed(buffer):
            value = _Places(program, start, end - start, buffer).classified(costs)
            if value is not None:
                found.append(value)
    found.sort(key=lambda value: (-value.savings_per_byte, value.buffer.number))
    return found


def _buffers(program: Program, start: int, end: int) -> Iterable[Buffer]:
    """The buffers of arrays that steps hold or read."""
    flow, of_value = program.flow, program.buffers.of_value
    found: dict[Buffer, None] = {}
    for step in program.schedule.steps[start:end]:
        values = [*flow.members(flow.held[step])]
        for operand in step.operands:
            values += flow.read(step, operand)
        for value in values:
            if value != NOTHING and flow.shape(value).is_array:
                found[of_value[value]] = None
    return found


class _Places:
    """The positions and uses of a buffer, sorted by iterations."""

    def __init__(self, program: Program, start: int, size: int, buffer: Buffer) -> None:
        self._program = program
        self._buffer = buffer
        self._start, self._size = start, size
        self.positions: dict[int, list[tuple[int, Position]]] = {-1: [], 0: [], 1: []}
        self.uses: dict[int, list[tuple[int, Use]]] = {-1: [], 0: [], 1: []}
        self.is_from_outside = False
        self.is_needed_outside = False
        for value in buffer.values:
            for position in program.flow.positions(value):
                self._add_position(position)
            for use in program.flow.uses(value):
                self._add_use(use)
        for uses in self.uses.values():
            uses.sort(key=lambda each: (each[0], each[1].operand, each[1].slot))
        for positions in self.positions.values():
            positions.sort(key=lambda each: (each[0], each[1].slot))

    def _add_position(self, position: Position) -> None:
        time = self._program.schedule.times.get(position.instruction)
        if time is None or position.instruction.opcode in TRIVIAL:
            return
        iteration, index = divmod(time - self._start, self._size)
        if iteration in self.positions:
            self.positions[iteration].append((index, position))
        self.is_from_outside |= iteration < -1

    def _add_use(self, use: Use) -> None:
        time = self._program.schedule.times.get(use.user)
        if time is None:
            return
        iteration, index = divmod(time - self._start, self._size)
        self.is_needed_outside |= iteration > 1
        if iteration in self.uses and use.user.opcode not in TRIVIAL:
            self.uses[iteration].append((index, use))

    def classified(self, costs: MemorySpaceCosts) -> LoopValue | None:
        """The value with its kind and savings; None where it is not one of the iteration."""
        positions, uses, next_uses = self.positions[0], self.uses[0], self.uses[1]
        if self.positions[-1] or not (positions or uses):
            return None
        kind = self._kind_of_defined() if positions else self._kind_of_read()
        value = LoopValue(self._buffer, kind, positions, uses, next_uses)
        read = uses
        if kind is ValueKind.TEMPORARY:
            read = uses + next_uses
            value.savings -= value.size if self.is_needed_outside else 0  # an eviction
        elif kind is ValueKind.PREFETCH:
            value.savings -= value.size
        for _, (instruction, slot) in positions:
            index = slots_of(instruction.shape).indices[slot]
            value.savings += costs.bytes_written(instruction, index)
        value.savings += sum(costs.bytes_read(self._program.place_of(use)) for _, use in read)
        return value

    def _kind_of_defined(self) -> ValueKind:
        uses, next_uses = self.uses[0], self.uses[1]
        if self.is_from_outside or self.positions[1] or not (uses or next_uses):
            return ValueKind.OTHER
        if next_uses and next_uses[-1][0] >= self.positions[0][0][0]:
            return ValueKind.LOOP_CARRIED
        return ValueKind.TEMPORARY

    def _kind_of_read(self) -> ValueKind:
        if not (self.uses[-1] or self.uses[1]):
            return ValueKind.PREFETCH
        places = [
            [(index, use.operand, use.slot) for index, use in self.uses[iteration]]
            for iteration in (-1, 0, 1)
        ]
        return ValueKind.PINNED if places[0] == places[1] == places[2] else ValueKind.OTHER
