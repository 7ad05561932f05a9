"""The alternate memory of a loop whose iterations repeat the same allocations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.memory_space.heap.loop_heap import LoopAllocation, LoopHeap


def offsets(found: LoopAllocation | None) -> tuple[int, int] | None:
    return None if found is None else found.offsets


def test_a_range_within_an_iteration_has_one_offset_in_all() -> None:
    heap = LoopHeap(10, 4)
    assert offsets(heap.allocate(0, 3, 4)) == (0, 0)
    assert offsets(heap.allocate_same(1, 2, 4)) == (4, 4)
    assert heap.last_offset == 8
    assert heap.remaining() == [6, 2, 2, 6]


@pytest.mark.parametrize(("begin", "end"), [(2, 6), (-2, 2), (-4, 7)])
def test_a_range_longer_than_an_iteration_has_two_offsets_or_none(begin: int, end: int) -> None:
    heap = LoopHeap(10, 4)
    assert heap.allocate_same(begin, end, 1) is None
    fits = end - begin < 8
    assert offsets(heap.allocate(begin, end, 4)) == ((0, 4) if fits else None)
    assert heap.last_offset == (8 if fits else 0)


def test_both_offsets_have_to_fit() -> None:
    heap = LoopHeap(7, 4)
    assert heap.allocate(2, 6, 4) is None
    assert heap.remaining() == [7] * 4
    assert heap.last_offset == 0


def test_finding_reserves_nothing() -> None:
    heap = LoopHeap(8, 4)
    for _ in range(2):
        assert offsets(heap.find(0, 1, 8)) == (0, 0)
        assert offsets(heap.find_same(0, 1, 8)) == (0, 0)
    assert heap.remaining() == [8] * 4


def test_the_smallest_gap_is_taken_and_the_lowest_of_equal_ones() -> None:
    heap = LoopHeap(100, 2)
    kept = [heap.allocate(0, 1, size) for size in (5, 1, 3, 1, 3, 1)]
    for number in (0, 2, 4):
        allocation = kept[number]
        assert allocation is not None
        heap.remove(allocation)
    assert offsets(heap.find(0, 0, 2)) == (6, 6)
    assert offsets(heap.find_same(0, 0, 4)) == (0, 0)
    assert offsets(heap.find_same(0, 0, 6)) == (14, 14)


def test_what_is_removed_is_free_and_removed_once() -> None:
    heap = LoopHeap(8, 3)
    first, second = heap.allocate_same(0, 2, 4), heap.allocate_same(0, 2, 4)
    assert first is not None
    assert second is not None
    assert heap.last_offset == 8
    heap.remove(second)
    assert heap.last_offset == 4
    assert heap.remaining() == [4, 4, 4]
    with pytest.raises(KeyError):
        heap.remove(second)


def test_offsets_are_aligned_and_sizes_are_not() -> None:
    heap = LoopHeap(20, 1, alignment=8)
    assert offsets(heap.allocate_same(0, 0, 3)) == (0, 0)
    assert offsets(heap.allocate_same(0, 0, 10)) == (8, 8)
    assert heap.last_offset == 18
    assert heap.remaining() == [7]
    assert heap.allocate_same(0, 0, 1) is None


def test_a_chunk_without_bytes_is_in_nobodys_way() -> None:
    heap = LoopHeap(4, 1)
    assert heap.allocate(0, 0, 0) is not None
    assert offsets(heap.allocate_same(0, 0, 4)) == (0, 0)
    assert heap.allocate_same(0, 0, 0) is not None
    assert heap.allocate_same(0, 0, 1) is None


LOOP, SIZE = 3, 12
RANGES = st.tuples(st.integers(-LOOP, 2 * LOOP - 1), st.integers(0, 2 * LOOP), st.integers(1, 5))
STEPS = st.tuples(RANGES, st.sampled_from(["allocate", "allocate_same", "remove"]))


class Cells:
    """Bytes at each time of two iterations: who has each."""

    def __init__(self) -> None:
        self.taken: set[tuple[int, int]] = set()

    def times(self, begin: int, end: int, parity: int) -> list[int]:
        return [(time + parity * LOOP) % (2 * LOOP) for time in range(begin, end + 1)]

    def best(self, times: list[int], size: int, alignment: int) -> int | None:
        """The lowest offset of the smallest gap, looked for byte by byte."""
        if len(set(times)) < len(times):
            return None
        used = {address for time, address in self.taken if time in times}
        top = max(used, default=-1) + 1
        gaps = []
        start = None
        for address in range(top + 1):
            is_free = address not in used
            if is_free and start is None:
                start = address
            if (not is_free or address == top) and start is not None:
                offset = -(-start // alignment) * alignment
                length = SIZE * 9 if address == top else address - offset
                if length >= size:
                    gaps.append((length, offset))
                start = None
        offset = min(gaps)[1]
        return offset if offset + size <= SIZE else None

    def best_pair(self, begin: int, end: int, size: int, alignment: int) -> tuple[int, int] | None:
        """The best offset in even iterations, and then that in odd ones."""
        even = self.best(self.times(begin, end, 0), size, alignment)
        if even is None:
            return None
        before = self.taken
        times = self.times(begin, end, 0)
        self.taken = before | {(time, even + byte) for time in times for byte in range(size)}
        odd = self.best(self.times(begin, end, 1), size, alignment)
        self.taken = before
        return None if odd is None else (even, odd)

    def change(self, found: LoopAllocation, *, take: bool) -> None:
        for parity, offset in enumerate(found.offsets):
            for time in self.times(found.begin, found.end, parity):
                cells = {(time, offset + byte) for byte in range(found.size)}
                assert cells.isdisjoint(self.taken) if take else cells <= self.taken
                self.taken = self.taken | cells if take else self.taken - cells


@given(st.lists(STEPS, max_size=15), st.sampled_from([1, 2]))
def test_as_a_look_at_every_byte(
    steps: list[tuple[tuple[int, int, int], str]], alignment: int
) -> None:
    heap, cells = LoopHeap(SIZE, LOOP, alignment), Cells()
    live: list[LoopAllocation] = []
    for (begin, length, size), word in steps:
        end = min(begin + length, 2 * LOOP - 1)
        if word == "remove":
            if live:
                gone = live.pop(begin % len(live))
                heap.remove(gone)
                cells.change(gone, take=False)
        elif word == "allocate_same":
            times = [*cells.times(begin, end, 0), *cells.times(begin, end, 1)]
            expected = cells.best(times, size, alignment)
            found = heap.allocate_same(begin, end, size)
            assert offsets(found) == (None if expected is None else (expected, expected))
        else:
            expected_pair = cells.best_pair(begin, end, size, alignment)
            found = heap.allocate(begin, end, size)
            assert offsets(found) == expected_pair
        if word != "remove" and found is not None:
            cells.change(found, take=True)
            live.append(found)
        used = [sum(time == index for time, _ in cells.taken) for index in range(2 * LOOP)]
        assert used[:LOOP] == used[LOOP:]
        assert heap.remaining() == [SIZE - n for n in used[:LOOP]]
        assert heap.last_offset == max((a + 1 for _, a in cells.taken), default=0)
