"""New offsets for the chunks of alternate memory: best fit, the longest first."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from hloopt.memory.heap.address_space import AddressSpace
from hloopt.memory_space.costs.slice_times import slice_time_permutations
from hloopt.memory_space.heap.gaps import aligned, free_gaps


@dataclass(frozen=True, slots=True)
class RepackSlice:
    """A part of a chunk that is in use from a time of its own to the end of its block."""

    size: int
    start: int
    offset: int | None = None
    """Of the part, not within the chunk; None where it has none yet."""


@dataclass(slots=True, eq=False)
class RepackBlock:
    """A chunk in use from `start` to `end`, both included."""

    start: int
    end: int
    size: int
    offset: int | None = None
    """None where it has none yet."""
    group: Hashable = None
    """Blocks of one group are colocated: they have one offset. None for a group of its own."""
    slices: list[RepackSlice] = field(default_factory=list)
    """The parts that make up the chunk; empty where it is in use as a whole from the start."""


def best_fit_repack(
    blocks: Sequence[RepackBlock],
    max_size: int,
    alignment: int = 1,
    *,
    every_permutation: bool = True,
    keep_order: bool = False,
) -> bool:
    """Give each block and its slices new offsets; False, and nothing changed, if they do not fit.

    Blocks are placed by duration, longest first, then by size, largest first. The duration is that
    from the block's start to the end of its group. A block is placed with its whole group, in the
    shortest gap that suits all of it, at the lowest offset.

    Args:
        blocks: The blocks to place.
        max_size: The bytes of alternate memory.
        alignment: Each block's offset is a multiple of it.
        every_permutation: Whether slices may have their start times in any order, not just
            ascending or descending with the offset.
        keep_order: Whether to place the blocks in the order of the list.
    """
    groups = _groups(blocks, every_permutation)
    order = blocks if keep_order else sorted(blocks, key=lambda b: _rank(b, groups[id(b)]))
    times = [time for block in blocks for time in (block.start, block.end)]
    times += [part.start for block in blocks for part in block.slices]
    first = min(times, default=0)
    memory = _Memory(first, max(times, default=0), alignment)
    placed: dict[_Group, int] = {}
    for group in (groups[id(block)] for block in order):
        if group in placed:
            continue
        offset = memory.find(group)
        if offset is None or offset + group.size > max_size:
            return False
        memory.take(group, offset)
        placed[group] = offset
    for group, offset in placed.items():
        for member in group.members:
            member.move(offset)
    return True


@dataclass(slots=True, eq=False)
class _Member:
    """A block, and how its slices may be arranged."""

    block: RepackBlock
    sizes: list[int]
    """Of the parts, in order of their offsets. A block without slices is one part."""
    places: list[int]
    """The offset of each part within the block."""
    arrangements: list[tuple[int, ...]]
    """The start times that the parts may have, the first choice first."""
    arrangement: tuple[int, ...] = ()
    """The start times that they got."""

    def parts(self) -> Iterator[tuple[int, int, int]]:
        """The place, the size and the start time of each part, as arranged."""
        return zip(self.places, self.sizes, self.arrangement, strict=True)

    def move(self, offset: int) -> None:
        """Give the block its new offset and its slices their new offsets and start times."""
        self.block.offset = offset
        if self.block.slices:
            self.block.slices = [
                RepackSlice(size, start, offset + place) for place, size, start in self.parts()
            ]


@dataclass(slots=True, eq=False)
class _Group:
    """Blocks that have one offset."""

    members: list[_Member] = field(default_factory=list)
    size: int = 0
    """Of the largest one."""
    end: int = 0
    """The last one."""


def _groups(blocks: Sequence[RepackBlock], every_permutation: bool) -> dict[int, _Group]:
    """The group of each block, by the block's identity."""
    by_name: dict[Hashable, _Group] = {}
    result: dict[int, _Group] = {}
    for block in blocks:
        group = _Group(end=block.end)
        if block.group is not None:
            group = by_name.setdefault(block.group, group)
        group.members.append(_member(block, every_permutation))
        group.size = max(group.size, block.size)
        group.end = max(group.end, block.end)
        result[id(block)] = group
    return result


def _member(block: RepackBlock, every_permutation: bool) -> _Member:
    parts = list(block.slices) or [RepackSlice(block.size, block.start)]
    offsets = [part.offset for part in parts if part.offset is not None]
    if len(offsets) == len(parts):
        parts = [part for _, part in sorted(zip(offsets, parts, strict=True), key=lambda p: p[0])]
    sizes = [part.size for part in parts]
    pairs = Counter((part.size, part.start) for part in parts)
    orders = slice_time_permutations([part.start for part in parts], every=every_permutation)
    allowed = [times for times in orders if Counter(zip(sizes, times, strict=True)) == pairs]
    places = [0, *accumulate(sizes)][:-1]
    return _Member(block, sizes, places, allowed)


def _rank(block: RepackBlock, group: _Group) -> tuple[int, int, int, int]:
    offset = -1 if block.offset is None else block.offset
    return block.start - group.end, -block.size, block.start, offset


class _Memory:
    """The chunks that are placed, over time. Each takes all up to the next offset."""

    def __init__(self, first: int, last: int, alignment: int) -> None:
        self._first = first
        self._space = AddressSpace(last - first + 1)
        self._alignment = alignment

    def find(self, group: _Group) -> int | None:
        """The offset for a group, its members arranged to suit it; None if none suits them.

        The gaps are those at the times when all parts of a member are in use.
        """
        if not all(member.arrangements for member in group.members):
            return None
        intervals = [
            (max(m.arrangements[0]) - self._first, m.block.end - self._first) for m in group.members
        ]
        for member in group.members:
            member.arrangement = member.arrangements[0]
        if all(len(member.sizes) == 1 for member in group.members):
            return self._space.best_gap(intervals, group.size)
        fits = [self._fit(member) for member in group.members]
        for length, offset in sorted(free_gaps(self._space.taken(intervals), group.size)):
            found = _lowest(fits, offset, offset + length - group.size, self._alignment)
            if found is not None:
                for member, fit in zip(group.members, fits, strict=True):
                    member.arrangement = fit.arrangement_at(found)
                return found
        return None

    def take(self, group: _Group, offset: int) -> None:
        """Take the memory of a group, as its members are arranged."""
        for member in group.members:
            for place, size, start in member.parts():
                if size:
                    interval = start - self._first, member.block.end - self._first
                    top = aligned(offset + place + size, self._alignment)
                    self._space.take(offset + place, top, interval)

    def _fit(self, member: _Member) -> _Fit:
        end = member.block.end - self._first
        return _Fit(
            member,
            {
                start: _Taken(self._space.taken([(start - self._first, end)]))
                for start in set(member.arrangements[0])
            },
        )


class _Taken:
    """Ranges of addresses in use, disjoint and in order."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in ranges:
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def next_free(self, offset: int, size: int) -> int:
        """The lowest offset, not below the given one, at which `size` bytes are free."""
        number = bisect_right(self._ends, offset) if size else len(self._ends)
        while number < len(self._ends) and self._starts[number] < offset + size:
            offset = self._ends[number]
            number += 1
        return offset


@dataclass(slots=True)
class _Fit:
    """The offsets that suit a member."""

    member: _Member
    taken: dict[int, _Taken]
    """The ranges in use from a start time of a part to the end of the block."""

    def next_offset(self, offset: int) -> int:
        """The lowest offset, not below the given one, that suits an arrangement."""
        return min(self._next(times, offset) for times in self.member.arrangements)

    def arrangement_at(self, offset: int) -> tuple[int, ...]:
        """The first arrangement that an offset suits."""
        arrangements = self.member.arrangements
        return next(times for times in arrangements if self._next(times, offset) == offset)

    def _next(self, times: tuple[int, ...], offset: int) -> int:
        """The lowest offset, not below the given one, that suits the parts with these starts."""
        parts = list(zip(self.member.places, self.member.sizes, times, strict=True))
        before = -1
        while before != offset:
            before = offset
            for place, size, start in parts:
                offset = self.taken[start].next_free(offset + place, size) - place
        return offset


def _lowest(fits: Sequence[_Fit], offset: int, last: float, alignment: int) -> int | None:
    """The lowest multiple of the alignment between two offsets that suits all; None if none."""
    while offset <= last:
        found = max(fit.next_offset(offset) for fit in fits)
        if found == offset:
            return offset
        offset = aligned(found, alignment)
    return None
