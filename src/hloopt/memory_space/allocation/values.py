"""Allocation values: the stretches of a buffer's life that begin where an instruction has it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hloopt.analysis.dataflow import Position, Use, slots_of
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.memory_space.allocation.allocations import Allocation, CopyAllocation
from hloopt.memory_space.allocation.allowed import HELD_UNTIL_DONE
from hloopt.memory_space.program import TRIVIAL, Program
from hloopt.memory_space.use_site import UseSite

RETURNS = (Opcode.CONDITIONAL, Opcode.CALL)
"""Opcodes whose results are those of the computations they call."""


@dataclass(slots=True, eq=False)
class TimedUse:
    """A use of an allocation value, with when the value is needed there."""

    use: Use
    time: int
    """Of a while that of its body's parameter, of a conditional that of its first branch's."""
    place: UseSite
    aliases: list[Position] = field(default_factory=list)
    """Positions that lie in one place with the operand: they get what the use gets."""


@dataclass(slots=True, eq=False)
class AllocationValue:
    """A position of a value with the uses that read it there, in order of time."""

    value: int
    position: Position
    time: int
    size: int
    uses: list[TimedUse] = field(default_factory=list)
    sequence: list[Allocation] = field(default_factory=list)
    """Where it lies, in order of time."""
    is_contiguous: bool = False
    """Whether it may not be copied between its definition and its last use."""

    @property
    def copies(self) -> list[CopyAllocation]:
        """The stays that begin with a copy."""
        return [stay for stay in self.sequence if isinstance(stay, CopyAllocation)]

    @property
    def computation(self) -> Computation:
        return self.position.instruction.parent


def allocation_values(program: Program, values: Iterable[int]) -> list[AllocationValue]:
    """The allocation values of the values of one buffer. O(positions + uses · log positions)."""
    result: list[AllocationValue] = []
    for value in values:
        result += _of_value(program, value)
    _add_aliases(program, result)
    return result


def _of_value(program: Program, value: int) -> list[AllocationValue]:
    times, size = program.schedule.times, program.buffers.value_size(value)
    positions = [
        p
        for p in program.flow.positions(value)
        if p.instruction.opcode not in TRIVIAL and program.has(p.instruction)
    ]
    positions.sort(key=lambda p: times[p.instruction])
    made = [AllocationValue(value, p, times[p.instruction], size) for p in positions]
    # What an operation holds until its done is read by the done alone.
    held = {one.position: one for one in made if _is_held(one.position)}
    readable: dict[Computation, list[AllocationValue]] = {}
    for one in made:
        if not _is_held(one.position):
            readable.setdefault(one.computation, []).append(one)
    for use in program.flow.uses(value):
        if not program.has(use.user) or (
            use.user.opcode is Opcode.BITCAST and not use.user.is_root
        ):
            continue
        site = TimedUse(use, program.time_of_use(use.user), program.place_of(use))
        holder = held.get(origin(use))
        if holder is not None:
            holder.uses.append(site)
            continue
        candidates = readable.get(use.user.parent, [])
        index = bisect_left(candidates, times[use.user], key=lambda one: one.time)
        if index:
            candidates[index - 1].uses.append(site)
    for one in made:
        one.uses.sort(key=lambda site: (times[site.use.user], site.use.operand, site.use.slot))
    return made


def _is_held(position: Position) -> bool:
    return position.instruction.opcode in HELD_UNTIL_DONE


def _add_aliases(program: Program, made: Sequence[AllocationValue]) -> None:
    defined: dict[Instruction, list[Position]] = {}
    for one in made:
        defined.setdefault(one.position.instruction, []).append(one.position)
    for one in made:
        for site in one.uses:
            user = site.use.user
            site.aliases += defined.get(user, ())
            for callee in program.entered(user):
                for parameter in callee.parameters:
                    site.aliases += defined.get(parameter, ())
            caller = program.schedule.first_call.get(user.parent)
            if user.is_root and caller is not None and caller.opcode in RETURNS:
                site.aliases += defined.get(caller, ())
            if user.opcode is Opcode.WHILE:
                site.aliases.append(Position(user.called[0].root, site.use.slot))


def origin(use: Use) -> Position:
    """Where a use finds its value, behind tuples, elements and bitcasts. O(those)."""
    return _origin(use)[0]


def is_bitcast_before(use: Use) -> bool:
    """Whether a use reads its value through a bitcast. O(tuples, elements and bitcasts)."""
    return _origin(use)[1]


def _origin(use: Use) -> tuple[Position, bool]:
    instruction, slot = use.user.operands[use.operand], use.slot
    is_bitcast = False
    while True:
        if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            number = instruction.tuple_index
            instruction = instruction.operands[0]
            slot += slots_of(instruction.shape).element_starts[number]
        elif instruction.opcode is Opcode.TUPLE and slot:
            starts = slots_of(instruction.shape).element_starts
            number = bisect_right(starts, slot) - 1
            instruction, slot = instruction.operands[number], slot - starts[number]
        elif instruction.opcode is Opcode.BITCAST:
            instruction, is_bitcast = instruction.operands[0], True
        else:
            return Position(instruction, slot), is_bitcast
