"""Why operations are not better hidden."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from operator import xor

from hloopt.ir import Instruction
from hloopt.ir.ordering import dependencies
from hloopt.simulation.execution import ComputationRun
from hloopt.simulation.operations import Operation, Stream

_MATTERS = 0.1
"""Less than this share of the time that is exposed is no reason."""


class Reason(StrEnum):
    """What keeps the rest of an operation from being hidden."""

    HIDDEN = "hidden"
    """Nothing is left to hide."""
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
    """What there is to hide one operation. Times are cycles of one run."""

    operation: Operation
    reason: Reason = Reason.HIDDEN
    under: float = 0.0
    """Work between start and done."""
    taken: float = 0.0
    """Independent work elsewhere, while the stream is full."""
    free: float = 0.0
    """Independent work elsewhere, while the stream has room."""
    examples: tuple[Instruction, ...] = ()
    """What the reason speaks of: the longest of the work, or what feeds it and what needs it."""


@dataclass(slots=True)
class MemoryUse:
    """The memory that a run uses, against a limit."""

    usage: Sequence[int]
    """Bytes by position."""
    limit: int

    def has_room(self, operation: Operation, first: int, last: int) -> bool:
        """Whether an operation may be under way at those positions, too.

        It holds its result there, or its operands, which may end otherwise. O(positions).
        """
        return max(self.usage[first : last + 1]) + operation.size <= self.limit


def explain_hiding(
    run: ComputationRun,
    *,
    hazards: Iterable[tuple[Instruction, Instruction]] = (),
    memory: MemoryUse | None = None,
) -> list[Hiding]:
    """What hides each operation of a run, and why not more does; in the order of `operations`.

    Work is independent of an operation if it neither feeds the start nor needs the done: then it
    can be put between them, together with what stands in its way. `hazards` are pairs of which
    the first must come before the second beside what they depend on. O(edges · exposed operations
    / 64), and O(exposed operations) for each instruction that takes time.
    """
    positions = run.positions
    work = _real_work(run)
    busy = Prefix(work)
    result = []
    for operation in run.operations:
        under = busy.between(positions[operation.start] + 1, positions[operation.done])
        result.append(Hiding(operation, under=under))
    exposed = [hiding for hiding in result if _is_exposed(hiding.operation)]
    related = _related(run, exposed, hazards)
    for hiding, elsewhere in zip(
        exposed, _find_elsewhere(run, work, exposed, related), strict=True
    ):
        _judge(hiding, elsewhere, run, work, memory)
    return result


class Prefix:
    """Sums of intervals."""

    def __init__(self, values: Iterable[float]) -> None:
        self._sums = [0.0]
        for value in values:
            self._sums.append(self._sums[-1] + value)

    def between(self, first: int, end: int) -> float:
        """The sum of the values from position `first` to before `end`. O(1)."""
        return self._sums[max(first, end)] - self._sums[first]


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
class _Elsewhere:
    """Independent work outside of an operation that stands from position `start` to `done`."""

    start: int
    done: int
    least: float
    """The time below which work does not matter."""
    taken: float = 0.0
    longest_taken: tuple[float, int] = (0.0, -1)
    """Its time and position."""
    free: float = 0.0
    longest_free: tuple[float, int] = (0.0, -1)
    nearest_free: list[int] = field(default_factory=lambda: [-1, -1])
    """The position of the last that matters before the operation, and of the first after it."""

    def add(self, free: float, taken: float, position: int) -> None:
        """Count work at a position by whether the stream has room then."""
        self.taken += taken
        self.longest_taken = max(self.longest_taken, (taken, position))
        self.free += free
        self.longest_free = max(self.longest_free, (free, position))
        if free < self.least:
            return
        if position < self.start:
            self.nearest_free[0] = position
        elif self.nearest_free[1] < 0:
            self.nearest_free[1] = position

    def free_places(self) -> list[int]:
        """The positions where there is work to be had, what is near first."""
        before, after = self.nearest_free
        places = [place for place in (before, after) if place >= 0]
        places.sort(key=lambda place: max(self.start - place, place - self.done))
        return places or [self.longest_free[1]]

    def way_to(self, place: int) -> tuple[int, int]:
        """The positions from the operation to a place outside of it, that included."""
        return (place, self.start) if place < self.start else (self.done, place)


def _find_elsewhere(
    run: ComputationRun, work: list[float], exposed: list[Hiding], related: list[int]
) -> list[_Elsewhere]:
    """For each of `exposed` what runs elsewhere."""
    positions = run.positions
    found = [
        _Elsewhere(
            positions[hiding.operation.start],
            positions[hiding.operation.done],
            _MATTERS * hiding.operation.exposed,
        )
        for hiding in exposed
    ]
    everyone = (1 << len(exposed)) - 1
    full = {stream: _full_shares(run, stream) for stream in _streams(exposed)}
    on_stream = {
        stream: sum(1 << n for n, h in enumerate(exposed) if h.operation.stream is stream)
        for stream in full
    }
    between = _between(found, len(work))
    for position, time in enumerate(work):
        if time <= 0:
            continue
        left = everyone & ~related[position] & ~between[position]
        for stream, shares in full.items():
            taken = time * shares[position]
            for number in _bits(left & on_stream[stream]):
                found[number].add(time - taken, taken, position)
    return found


def _streams(exposed: list[Hiding]) -> Iterable[Stream]:
    return dict.fromkeys(hiding.operation.stream for hiding in exposed)


def _between(found: list[_Elsewhere], count: int) -> list[int]:
    """By position the operations between whose start and done it is, as a bit set."""
    changes = [0] * (count + 1)
    for number, operation in enumerate(found):
        changes[operation.start] ^= 1 << number
        changes[operation.done] ^= 1 << number
    return list(accumulate(changes, xor))


def _full_shares(run: ComputationRun, stream: Stream) -> list[float]:
    """By position for how much of an instruction's time a stream is full."""
    shares = [0.0] * len(run.order)
    for first, last in _full_times(run, stream):
        position = bisect_right(run.end, first)
        while position < len(shares) and run.begin[position] < last:
            begin, end = run.begin[position], run.end[position]
            if end > begin:
                shares[position] += (min(end, last) - max(begin, first)) / (end - begin)
            position += 1
    return shares


def _full_times(run: ComputationRun, stream: Stream) -> Iterator[tuple[float, float]]:
    """From when to when a stream takes no further operation, in order."""
    own = [operation for operation in run.operations if operation.stream is stream]
    if stream.limit is None:
        return
    changes = [(operation.begin, 1) for operation in own]
    changes += [(operation.finish, -1) for operation in own]
    count, since = 0, 0.0
    for time, change in sorted(changes):
        if count + change >= stream.limit > count:
            since = time
        elif count >= stream.limit > count + change:
            yield since, time
        count += change


def _related(
    run: ComputationRun,
    exposed: list[Hiding],
    hazards: Iterable[tuple[Instruction, Instruction]],
) -> list[int]:
    """By position the operations, as a bit set, that an instruction feeds or needs."""
    own: dict[Instruction, int] = {}
    for number, hiding in enumerate(exposed):
        for instruction in (hiding.operation.start, hiding.operation.done):
            own[instruction] = own.get(instruction, 0) | 1 << number
    before = {instruction: dependencies(instruction) for instruction in run.order}
    positions = run.positions
    for earlier, later in hazards:
        if positions[earlier] < positions[later]:  # else a copy is to come between them
            before[later] = (*before[later], earlier)
    needs: dict[Instruction, int] = {}
    for instruction in run.order:
        bits = own.get(instruction, 0)
        for source in before[instruction]:
            bits |= needs[source]
        needs[instruction] = bits
    feeds = dict(own)
    result: list[int] = []
    for instruction in reversed(run.order):
        bits = feeds.get(instruction, 0)
        result.append(bits | needs[instruction])
        if bits:
            for source in before[instruction]:
                feeds[source] = feeds.get(source, 0) | bits
    result.reverse()
    return result


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _judge(
    hiding: Hiding,
    elsewhere: _Elsewhere,
    run: ComputationRun,
    work: list[float],
    memory: MemoryUse | None,
) -> None:
    operation = hiding.operation
    hiding.taken, hiding.free = elsewhere.taken, elsewhere.free
    enough = elsewhere.least
    if elsewhere.free >= enough:
        places = elsewhere.free_places()
        roomy = [
            p for p in places if memory is None or memory.has_room(operation, *elsewhere.way_to(p))
        ]
        hiding.reason = Reason.ORDER if roomy else Reason.MEMORY_LIMIT
        hiding.examples = (run.order[(roomy or places)[0]],)
    elif elsewhere.taken >= enough:
        hiding.reason = Reason.OVERLAP_LIMIT
        hiding.examples = (run.order[elsewhere.longest_taken[1]],)
    elif operation.queued >= enough:
        hiding.reason = Reason.OVERLAP_LIMIT
    elif hiding.under > 0:
        hiding.reason = Reason.NOTHING_LEFT
    else:
        hiding.reason = Reason.DEPENDENCY
        before, after = _neighbors(operation, run, work)
        hiding.examples = tuple(instruction for instruction in (before, after) if instruction)


def _neighbors(
    operation: Operation, run: ComputationRun, work: list[float]
) -> tuple[Instruction | None, Instruction | None]:
    """The last work that the start waits for, and the first that needs the done."""
    positions = run.positions

    def users(instruction: Instruction) -> Iterable[Instruction]:
        return (*instruction.users, *instruction.control_successors)

    before = _nearest_work(operation.start, dependencies, positions, work)
    after = _nearest_work(operation.done, users, positions, work)
    return max(before, key=positions.__getitem__, default=None), min(
        after, key=positions.__getitem__, default=None
    )


def _nearest_work(
    origin: Instruction,
    neighbors: Callable[[Instruction], Iterable[Instruction]],
    positions: Mapping[Instruction, int],
    work: list[float],
) -> list[Instruction]:
    """What takes time in one direction, with nothing that does on the way."""
    found: list[Instruction] = []
    seen = {origin}
    stack = [origin]
    while stack:
        for neighbor in neighbors(stack.pop()):
            if neighbor not in seen:
                seen.add(neighbor)
                (found if work[positions[neighbor]] > 0 else stack).append(neighbor)
    return found
