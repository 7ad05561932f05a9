"""The list scheduler: of all that is ready, what frees most memory goes first."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from hloopt.analysis.dataflow import NOTHING, Dataflow
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.memory.schedulers.walks import NO_MEMORY

Priority = tuple[float, int]
_FIRST: Priority = (float("inf"), 1 << 62)
_MAKE_ALL = (Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL)
_LAST: Priority = (float("-inf"), -1)


def list_order(
    computation: Computation,
    flow: Dataflow,
    sizes: dict[int, int],
) -> list[Instruction]:
    """Take, again and again, the ready instruction that frees most bytes more than it needs.

    `sizes` holds the bytes of values. Near-linear in the edges and the parts of tuples they carry.
    """
    return _ListScheduler(computation, flow, sizes).run()


class _ListScheduler:
    def __init__(
        self,
        computation: Computation,
        flow: Dataflow,
        sizes: dict[int, int],
    ) -> None:
        self.computation = computation
        self.flow = flow
        self.sizes = sizes
        self.uses = {i: self._values_read(i) for i in computation.instructions}
        self.uses_left: dict[int, int] = {}
        for values in self.uses.values():
            for value in values:
                self.uses_left[value] = self.uses_left.get(value, 0) + 1
        for value in dict.fromkeys(flow.members(flow.held[computation.root])):
            self.uses_left[value] = self.uses_left.get(value, 0) + 1
        self.position = {i: number for number, i in enumerate(flow.scope.orders[computation])}
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

    def _values_read(self, instruction: Instruction) -> list[int]:
        flow = self.flow
        found = dict.fromkeys(
            value
            for operand in instruction.operands
            for value in flow.members(flow.held[operand])
            if value != NOTHING
        )
        return list(found)

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
        """Note that the values it reads are read once less; those that have one reader left."""
        last: set[int] = set()
        for value in self.uses[instruction]:
            self.uses_left[value] -= 1
            if self.uses_left[value] == 1:
                last.add(value)
        return last

    def _adjust(self, scheduled: Instruction, last: set[int]) -> None:
        """Look again at who may be the last reader of what `scheduled` read."""
        flow = self.flow
        readers: dict[Instruction, None] = {}
        for operand in dict.fromkeys(scheduled.operands):
            if not last.isdisjoint(flow.members(flow.held[operand])):
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
        return self._freed(self.uses[instruction]) - self._defined(instruction), len(
            instruction.users
        )

    def _freed(self, values: Iterable[int]) -> int:
        definer = self.flow.definer
        return sum(
            self.sizes[value]
            for value in values
            if self.uses_left[value] == 1 and definer[value].opcode not in NO_MEMORY
        )

    def _defined(self, instruction: Instruction) -> int:
        """The bytes of the values it makes; a caller makes its whole result."""
        if instruction.opcode in NO_MEMORY:
            return 0
        makes_all = instruction.opcode in _MAKE_ALL
        definer = self.flow.definer
        return sum(
            self.sizes[value]
            for value in dict.fromkeys(self.flow.members(self.flow.held[instruction]))
            if value != NOTHING and (makes_all or definer[value] is instruction)
        )
