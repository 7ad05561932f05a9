"""The reason why operations are not better hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

import numpy as np

from hloopt.ir import Instruction
from hloopt.ir.ordering import dependencies
from hloopt.simulation.execution import ComputationRun
from hloopt.simulation.independence import IndependentWork, Positions, full_shares
from hloopt.simulation.operations import Operation

_MATTERS = 0.1
"""Less than this share of the time that is exposed is no reason."""


class Reason(StrEnum):
    """The reason why the rest of an operation is exposed."""

    HIDDEN = "hidden"
    """Nothing is left to hide."""
    SYNCHRONOUS = "synchronous"
    """The main stream waits for all of it at once."""
    DEPENDENCY = "dependency"
    """All other work feeds it or needs it."""
    NOTHING_LEFT = "nothing left to run"
    """All work that neither feeds it nor needs it runs under it."""
    OVERLAP_LIMIT = "overlap limit"
    """Such work is left, but while it runs the stream is full."""
    MEMORY_LIMIT = "memory limit"
    """Such work is left where the stream has room, but the memory would not suffice."""
    ORDER = "order"
    """Such work is left, and nothing but the order keeps it from running under the operation."""


@dataclass(slots=True)
class Hiding:
    """The work that could hide one operation. Times are cycles of one run."""

    operation: Operation
    reason: Reason = Reason.HIDDEN
    under: float = 0.0
    """Work between start and done."""
    taken: float = 0.0
    """Independent work elsewhere, while the stream is full."""
    free: float = 0.0
    """Independent work elsewhere, while the stream has room."""
    examples: tuple[Instruction, ...] = ()
    """The instructions of the reason: the longest of the work, or its producers and consumers."""


@dataclass(slots=True)
class MemoryUse:
    """The memory that a run uses, against a limit."""

    usage: Sequence[int]
    """Bytes by position."""
    limit: int

    def has_room(self, operation: Operation, first: int, last: int) -> bool:
        """Whether an operation may be under way at those positions, too: it holds its result there
        if it begins earlier than now, or its operands if it ends later. O(positions)."""
        return max(self.usage[first : last + 1]) + operation.size <= self.limit


def explain_hiding(
    run: ComputationRun,
    *,
    hazards: Iterable[tuple[Instruction, Instruction]] = (),
    memory: MemoryUse | None = None,
) -> list[Hiding]:
    """The work that hides each operation of a run, and why there is no more; in the order of
    `operations`.

    Work is independent of an operation if it neither feeds the start nor needs the done: then it
    can be put between them, together with what stands in its way. `hazards` are pairs of which
    the first must come before the second beside what they depend on. O(edges · exposed operations
    / 64 + work · exposed operations), both in steps of the machine.
    """
    positions = run.positions
    times = _real_work(run)
    sums = [0.0, *accumulate(times)]
    result = [
        Hiding(o, under=sums[positions[o.done]] - sums[positions[o.start]]) for o in run.operations
    ]
    exposed = [hiding for hiding in result if _is_exposed(hiding.operation)]
    for hiding in exposed:
        if hiding.operation.is_synchronous:
            hiding.reason = Reason.SYNCHRONOUS
    if judged := [hiding for hiding in exposed if not hiding.operation.is_synchronous]:
        _Judge(run, positions, times, memory).all(judged, hazards)
    return result


def _real_work(run: ComputationRun) -> list[float]:
    """By position the work that can hide something: not what starts and dones themselves take."""
    steps = {i for operation in run.operations for i in (operation.start, operation.done)}
    return [
        0.0 if instruction in steps else time
        for instruction, time in zip(run.order, run.work, strict=True)
    ]


def _is_exposed(operation: Operation) -> bool:
    return operation.exposed > 1e-9 * max(operation.finish, 1.0)


@dataclass(slots=True)
class _Judge:
    """Finds reasons in one run."""

    run: ComputationRun
    positions: Mapping[Instruction, int]
    times: list[float]
    """Of the work at each position."""
    memory: MemoryUse | None

    def all(
        self, exposed: Sequence[Hiding], hazards: Iterable[tuple[Instruction, Instruction]]
    ) -> None:
        """Give each a reason."""
        operations = [hiding.operation for hiding in exposed]
        independent = IndependentWork(self.run, self.times, operations, hazards)
        times = np.array(self.times)
        taken = {
            stream: times * full_shares(self.run, stream)
            for stream in dict.fromkeys(operation.stream for operation in operations)
        }
        for number, hiding in enumerate(exposed):
            operation = hiding.operation
            start, done = self.positions[operation.start], self.positions[operation.done]
            places = independent.of(number)
            places = places[(places < start) | (places > done)]
            busy = taken[operation.stream][places]
            room = times[places] - busy
            hiding.taken, hiding.free = float(busy.sum()), float(room.sum())
            enough = _MATTERS * operation.exposed
            if hiding.free >= enough:
                large = places[room >= enough]
                if not len(large):
                    large = places[room == room.max()]
                self._blame_order(hiding, large[large < start], large[large > done])
            elif hiding.taken >= enough:
                hiding.reason = Reason.OVERLAP_LIMIT
                hiding.examples = (self.run.order[places[busy.argmax()]],)
            elif operation.queued >= enough:
                hiding.reason = Reason.OVERLAP_LIMIT
            elif hiding.under > 0:
                hiding.reason = Reason.NOTHING_LEFT
            else:
                hiding.reason = Reason.DEPENDENCY
                hiding.examples = self._neighbors(operation)

    def _blame_order(self, hiding: Hiding, before: Positions, after: Positions) -> None:
        """Say that work at some of these positions could hide it, if the memory suffices."""
        operation = hiding.operation
        start, done = self.positions[operation.start], self.positions[operation.done]
        ways = [(int(place), start) for place in before[-1:]]
        ways += [(done, int(place)) for place in after[:1]]
        ways.sort(key=lambda way: way[1] - way[0])
        memory = self.memory
        roomy = [way for way in ways if memory is None or memory.has_room(operation, *way)]
        hiding.reason = Reason.ORDER if roomy else Reason.MEMORY_LIMIT
        first, last = (roomy or ways)[0]
        hiding.examples = (self.run.order[last if first == done else first],)

    def _neighbors(self, operation: Operation) -> tuple[Instruction, ...]:
        """The last work that the start waits for, and the first that needs the done."""

        def users(instruction: Instruction) -> Iterable[Instruction]:
            return (*instruction.users, *instruction.control_successors)

        place = self.positions.__getitem__
        before = self._nearest_work(operation.start, dependencies)
        after = self._nearest_work(operation.done, users)
        return (*sorted(before, key=place)[-1:], *sorted(after, key=place)[:1])

    def _nearest_work(
        self,
        origin: Instruction,
        neighbors: Callable[[Instruction], Iterable[Instruction]],
    ) -> list[Instruction]:
        """The nearest instructions in one direction that take time."""
        found: list[Instruction] = []
        seen = {origin}
        stack = [origin]
        while stack:
            for neighbor in neighbors(stack.pop()):
                if neighbor not in seen:
                    seen.add(neighbor)
                    is_work = self.times[self.positions[neighbor]] > 0
                    (found if is_work else stack).append(neighbor)
        return found
