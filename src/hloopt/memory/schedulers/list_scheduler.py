"""The list scheduler: of all that is ready, what frees most memory goes first."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from hloopt.ir import Computation, Instruction, Opcode
from hloopt.memory.schedulers.local_buffers import NO_MEMORY, LocalBuffers

Priority = tuple[float, int]
_FIRST: Priority = (float("inf"), 1 << 62)
_LAST: Priority = (float("-inf"), -1)


def list_order(computation: Computation, buffers: LocalBuffers) -> list[Instruction]:
    """Take, again and again, the ready instruction that frees most bytes more than it needs.

    Near-linear in the edges and the parts of tuples they carry.
    """
    return _ListScheduler(computation, buffers).run()


class _ListScheduler:
    def __init__(self, computation: Computation, buffers: LocalBuffers) -> None:
        self.computation = computation
        self.buffers = buffers
        self.uses = {i: self._read(i) for i in computation.instructions}
        self.uses_left: dict[int, int] = {}
        for read in (*self.uses.values(), dict.fromkeys(buffers.held[computation.root])):
            for buffer in read:
                self.uses_left[buffer] = self.uses_left.get(buffer, 0) + 1
        self.position = {i: number for number, i in enumerate(buffers.order)}
        self.waiting_for: dict[Instruction, int] = {}
        self.ready: dict[Instruction, tuple[Priority, int]] = {}
        self.queue: list[tuple[float, int, int, Instruction]] = []
        self.queued = 0

    def run(self) -> list[Instruction]:
        for instruction in self.computation.instructions:
            count = len(set(instruction.operands)) + len(instruction.control_predecessors)
            self.waiting_for[instruction] = count
            if not count:
                self._enqueue(instruction, self._priority(instruction))
        order: list[Instruction] = []
        while self.ready:
            instruction = self._take()
            order.append(instruction)
            last = self._count_down(instruction)
            for follower in (*self._users(instruction), *instruction.control_successors):
                self.waiting_for[follower] -= 1
                if not self.waiting_for[follower]:
                    self._enqueue(follower, self._priority(follower))
            if last:
                self._adjust(instruction, last)
        return order

    def _read(self, instruction: Instruction) -> list[int]:
        held = self.buffers.held
        return list(dict.fromkeys(b for operand in instruction.operands for b in held[operand]))

    def _users(self, instruction: Instruction) -> list[Instruction]:
        """In post-order, as XLA has them after it read the module."""
        return sorted(instruction.users, key=self.position.__getitem__)

    # -- the queue ------------------------------------------------------------------------------

    def _enqueue(self, instruction: Instruction, priority: Priority) -> None:
        self.queued += 1
        self.ready[instruction] = priority, self.queued
        heappush(self.queue, (-priority[0], -priority[1], -self.queued, instruction))

    def _take(self) -> Instruction:
        while True:
            _, _, queued, instruction = heappop(self.queue)
            entry = self.ready.get(instruction)
            if entry is not None and entry[1] == -queued:
                del self.ready[instruction]
                return instruction

    def _count_down(self, instruction: Instruction) -> set[int]:
        """Note that the buffers it reads are read once less; those that have one reader left."""
        last: set[int] = set()
        for buffer in self.uses[instruction]:
            self.uses_left[buffer] -= 1
            if self.uses_left[buffer] == 1:
                last.add(buffer)
        return last

    def _adjust(self, scheduled: Instruction, last: set[int]) -> None:
        """Look again at who may be the last reader of what `scheduled` read."""
        readers: dict[Instruction, None] = {}
        for operand in dict.fromkeys(scheduled.operands):
            if not last.isdisjoint(self.buffers.held[operand]):
                readers.update(dict.fromkeys(self._users(operand)))
        for user in readers:
            entry = self.ready.get(user)
            if entry is not None:
                priority = self._priority(user)
                if priority != entry[0]:
                    self._enqueue(user, priority)

    # -- priorities -----------------------------------------------------------------------------

    def _priority(self, instruction: Instruction) -> Priority:
        shape = instruction.shape
        if shape.is_array and shape.element_count() == 1:
            return _FIRST
        if instruction.opcode is Opcode.OUTFEED and instruction.attributes.get("outfeed_config"):
            return _FIRST
        if instruction.opcode is Opcode.INFEED and instruction.attributes.get("infeed_config"):
            return _LAST
        freed = self._freed(self.uses[instruction])
        return freed - self.buffers.defined_bytes(instruction), len(instruction.users)

    def _freed(self, read: Iterable[int]) -> int:
        buffers = self.buffers
        return sum(
            buffers.size[buffer]
            for buffer in read
            if self.uses_left[buffer] == 1 and buffers.definer[buffer].opcode not in NO_MEMORY
        )
