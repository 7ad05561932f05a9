"""Why operations are not better hidden."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

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


def explain_hiding(run: ComputationRun, memory: MemoryUse | None = None) -> list[Hiding]:
    """What hides each operation of a run, and why not more does; in the order of `operations`.

    Work is independent of an operation if it neither feeds the start nor needs the done: then it
    can be put between them, together with what stands in its way. O(edges · exposed operations /
    64), and for distinct sets of independent operations O(operations) each.
    """
    positions = run.positions
    busy = Prefix(run.work)
    result = []
    for operation in run.operations:
        under = busy.between(positions[operation.start] + 1, positions[operation.done])
        result.append(Hiding(operation, under=under))
    exposed = [hiding for hiding in result if _is_exposed(hiding.operation)]
    for hiding, elsewhere in zip(exposed, _find_elsewhere(run, exposed, positions), strict=True):
        _judge(hiding, elsewhere, run, positions, memory)
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

    def add_taken(self, work: float, position: int) -> None:
        self.taken += work
        self.longest_taken = max(self.longest_taken, (work, position))

    def add_free(self, work: float, position: int) -> None:
        self.free += work
        self.longest_free = max(self.longest_free, (work, position))
        if work < self.least:
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
    run: ComputationRun, exposed: list[Hiding], positions: Mapping[Instruction, int]
) -> list[_Elsewhere]:
    """For each of `exposed` what runs elsewhere."""
    found = [
        _Elsewhere(
            positions[hiding.operation.start],
            positions[hiding.operation.done],
            _MATTERS * hiding.operation.exposed,
        )
        for hiding in exposed
    ]
    everyone = (1 << len(exposed)) - 1
    related = _related(run, exposed)
    on_stream: dict[Stream, int] = {}
    for number, hiding in enumerate(exposed):
        stream = hiding.operation.stream
        on_stream[stream] = on_stream.get(stream, 0) | 1 << number
    for position, under_way in _under_way(run, exposed, positions):
        work = run.work[position]
        if work <= 0:
            continue
        left = everyone & ~related[position] & ~under_way.exposed
        crowded = 0
        for stream in under_way.full:
            crowded |= on_stream.get(stream, 0)
        for number in _bits(left & crowded):
            found[number].add_taken(work, position)
        for number in _bits(left & ~crowded):
            found[number].add_free(work, position)
    return found


@dataclass(slots=True)
class _UnderWay:
    """What is between start and done at a position."""

    exposed: int = 0
    """The exposed operations among them, as a bit set."""
    count: dict[Stream, int] = field(default_factory=dict)
    full: set[Stream] = field(default_factory=set)

    def change(self, stream: Stream, by: int) -> None:
        """Let operations begin or end."""
        count = self.count[stream] = self.count.get(stream, 0) + by
        if stream.limit is not None and count >= stream.limit:
            self.full.add(stream)
        else:
            self.full.discard(stream)


def _under_way(
    run: ComputationRun, exposed: list[Hiding], positions: Mapping[Instruction, int]
) -> Iterator[tuple[int, _UnderWay]]:
    """Each position with what is under way there; the same object all the time."""
    numbers = {hiding.operation: number for number, hiding in enumerate(exposed)}
    begins = {positions[operation.start]: operation for operation in run.operations}
    ends = {positions[operation.done]: operation for operation in run.operations}
    state = _UnderWay()
    for position in range(len(run.order)):
        ending = ends.get(position)
        if ending is not None:
            state.change(ending.stream, -1)
            if ending in numbers:
                state.exposed &= ~(1 << numbers[ending])
        yield position, state
        beginning = begins.get(position)
        if beginning is not None:
            state.change(beginning.stream, 1)
            if beginning in numbers:
                state.exposed |= 1 << numbers[beginning]


def _related(run: ComputationRun, exposed: list[Hiding]) -> list[int]:
    """By position the operations, as a bit set, that an instruction feeds or needs."""
    own: dict[Instruction, int] = {}
    for number, hiding in enumerate(exposed):
        for instruction in (hiding.operation.start, hiding.operation.done):
            own[instruction] = own.get(instruction, 0) | 1 << number
    needs: dict[Instruction, int] = {}
    for instruction in run.order:
        bits = own.get(instruction, 0)
        for source in dependencies(instruction):
            bits |= needs[source]
        needs[instruction] = bits
    feeds = dict(own)
    result: list[int] = []
    for instruction in reversed(run.order):
        bits = feeds.get(instruction, 0)
        result.append(bits | needs[instruction])
        if bits:
            for source in dependencies(instruction):
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
    positions: Mapping[Instruction, int],
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
        hiding.examples = tuple(_neighbors(operation, positions))


def _neighbors(operation: Operation, positions: Mapping[Instruction, int]) -> Iterator[Instruction]:
    """The last of what the start waits for, and the first of what the done is needed for."""
    before = [i for i in dependencies(operation.start) if i in positions]
    if before:
        yield max(before, key=positions.__getitem__)
    after = [*operation.done.users, *operation.done.control_successors]
    if after:
        yield min(after, key=positions.__getitem__)
