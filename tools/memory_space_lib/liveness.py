"""The times at which values are needed."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.opcode import STARTS
from memory_space_lib.in_place import in_place_pairs
from memory_space_lib.sharing import FORWARDS, Sharing
from memory_space_lib.timeline import callees

Range = tuple[int, int]
"""The first and the last time."""
DONES = frozenset(
    (
        *(Opcode.ALL_REDUCE_DONE, Opcode.ALL_GATHER_DONE, Opcode.COLLECTIVE_PERMUTE_DONE),
        *(Opcode.COPY_DONE, Opcode.ASYNC_DONE, Opcode.SEND_DONE, Opcode.RECV_DONE),
    )
)


class Liveness:
    """The ranges of times of each value: one in every computation that it gets to.

    A value is there from its definition, or from the start of a computation that is given it; it
    is needed until its last read in that computation. A call, a while or a conditional reads when
    what it calls starts; an asynchronous operation reads until it is done, but for what it writes
    over. What a root holds is
    needed until its computation ends, results of the program longer than its last step. A loop's
    condition keeps all that the loop carries. O(positions and operands' positions).
    """

    def __init__(self, sharing: Sharing, *, late: dict[Instruction, int] | None = None) -> None:
        self.sharing = sharing
        self.line = sharing.line
        self._late = late or {}
        """Times for results that need their place later than they are made."""
        self._ranges: dict[int, dict[Computation, list[int]]] = {}
        for instruction in self.line.steps:
            self._define(instruction)
        for instruction in self.line.steps:
            self._read(instruction)
        for computation in self.line.spans:
            self._leave(computation)

    def values(self) -> Iterator[tuple[int, list[Range]]]:
        """Each value with its ranges."""
        for value, by_computation in self._ranges.items():
            yield value, [(start, max(start, end)) for start, end in by_computation.values()]

    def of(self, position: int) -> list[Range]:
        """The ranges of the value at a position."""
        found = self._ranges[self.sharing.values.find(position)]
        return [(start, max(start, end)) for start, end in found.values()]

    def _define(self, instruction: Instruction) -> None:
        line, computation = self.line, instruction.parent
        time = line.time[instruction]
        if instruction.opcode is Opcode.PARAMETER:
            time = line.spans[computation][0]
        time = self._late.get(instruction, time)
        for position in line.positions(instruction):
            value = self.sharing.values.find(position)
            ranges = self._ranges.setdefault(value, {})
            found = ranges.setdefault(computation, [time, time])
            if time < found[0]:
                found[0] = time

    def _read(self, instruction: Instruction) -> None:
        if instruction.opcode in FORWARDS:
            return
        time = self.line.time[instruction]
        called = callees(instruction)
        until = time
        if called:
            time = until = min(self.line.spans[callee][0] for callee in called)
        elif is_concat(instruction):
            time = until = time - 1  # the pieces become the whole
        elif instruction.opcode in STARTS:
            until = max([time, *(self.line.time[done] for done in dones_of(instruction))])
        in_place = {(pair[0], pair[1]) for pair in in_place_pairs(instruction)}
        for number, operand in enumerate(instruction.operands):
            for leaf, position in enumerate(self.line.positions(operand)):
                end = time if (number, leaf) in in_place else until
                self._need(position, instruction.parent, end)

    def _leave(self, computation: Computation) -> None:
        line = self.line
        last = line.end if computation.is_entry else line.spans[computation][1]
        for position in line.positions(computation.root):
            self._need(position, computation, last)
        for caller in computation.callers:
            if caller.opcode is Opcode.WHILE and caller.called[1] is computation:
                for position in line.positions(computation.parameters[0]):
                    self._need(position, computation, last)

    def _need(self, position: int, computation: Computation, time: int) -> None:
        found = self._ranges[self.sharing.values.find(position)][computation]
        found[1] = max(found[1], time)


def dones_of(start: Instruction) -> list[Instruction]:
    """The instructions that wait for a start, through async-updates."""
    found, waiting = [], [start]
    while waiting:
        for user in waiting.pop().users:
            if user.opcode is Opcode.ASYNC_UPDATE:
                waiting.append(user)
            elif user.opcode in DONES:
                found.append(user)
    return found


def is_concat(instruction: Instruction) -> bool:
    """Whether an instruction makes the pieces of a sliced prefetch one array, in their place."""
    return is_custom(instruction, "ConcatBitcast")


def is_custom(instruction: Instruction, target: str) -> bool:
    """Whether an instruction is a custom-call of a target."""
    return (
        instruction.opcode is Opcode.CUSTOM_CALL
        and (instruction.attribute("custom_call_target") or "").strip('"') == target
    )


def first_overlap(ranges: list[tuple[int, int, int]]) -> tuple[int, int, int] | None:
    """Two keys of ranges (start, end, key) that share more than one time, or None; and the time.

    Ranges of one key may share what they like; one may begin when another ends. O(n log n).
    """
    last_end, last_key = -1, -1
    for start, end, key in sorted(ranges):
        if key != last_key and start < last_end:
            return last_key, key, start
        if end >= last_end:
            last_end, last_key = end, key
    return None
