"""New offsets for the chunks of alternate memory."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.memory_space.heap.repacking import RepackBlock, RepackSlice, best_fit_repack

Slices = list[tuple[int, int]]
"""Sizes and start times."""


def block(
    start: int, end: int, size: int, group: str | None = None, slices: Slices | None = None
) -> RepackBlock:
    parts = [RepackSlice(*part) for part in slices or ()]
    return RepackBlock(start, end, size, group=group, slices=parts)


def repacked(
    *blocks: RepackBlock, max_size: int = 100, alignment: int = 1, keep_order: bool = False
) -> list[int | None]:
    assert best_fit_repack(blocks, max_size, alignment, keep_order=keep_order)
    return [block.offset for block in blocks]


def placed(block: RepackBlock) -> list[tuple[int | None, int, int]]:
    return [(part.offset, part.size, part.start) for part in block.slices]


def test_nothing_fits_into_nothing() -> None:
    assert best_fit_repack([], 0)
    assert best_fit_repack([block(0, 1, 0)], 0)
    assert not best_fit_repack([block(0, 1, 1)], 0)


def test_the_longest_is_placed_first_then_the_largest() -> None:
    assert repacked(block(10, 20, 10), block(5, 25, 15)) == [15, 0]
    assert repacked(block(0, 9, 3), block(0, 9, 4)) == [4, 0]
    assert repacked(block(1, 10, 4), block(0, 9, 4)) == [4, 0]
    blocks = [RepackBlock(0, 9, 4, offset=offset) for offset in (8, 4, None)]
    assert repacked(*blocks) == [8, 4, 0]


def test_the_end_of_its_group_makes_a_block_longer() -> None:
    blocks = (block(0, 2, 10, "a"), block(10, 20, 10, "a"), block(0, 15, 15))
    assert repacked(*blocks) == [0, 0, 10]
    assert repacked(block(0, 2, 10, "a"), block(10, 12, 10, "a"), block(0, 15, 15)) == [15, 15, 0]


def test_the_order_may_be_that_of_the_list() -> None:
    assert repacked(block(1, 2, 1), block(0, 9, 4), keep_order=True) == [0, 1]
    assert repacked(block(1, 2, 1), block(0, 9, 4)) == [4, 0]


def test_blocks_share_memory_at_different_times_both_ends_included() -> None:
    assert repacked(block(0, 4, 8), block(5, 9, 8)) == [0, 0]
    assert repacked(block(0, 5, 8), block(5, 9, 8)) == [0, 8]


def test_the_smallest_gap_is_taken_and_the_lowest_of_equal_ones() -> None:
    fixed = [block(0, 9, s) for s in (1, 5, 1, 3, 1, 3, 1)]
    for number in (1, 3, 5):  # the gaps, later
        fixed[number].end = 4
    late = [block(6, 7, size) for size in (2, 3, 4)]
    assert repacked(*fixed, *late, keep_order=True)[-3:] == [7, 11, 1]


def test_offsets_are_aligned_and_sizes_are_not() -> None:
    assert repacked(block(0, 9, 3), block(0, 8, 10), max_size=18, alignment=8) == [0, 8]
    assert not best_fit_repack([block(0, 9, 3), block(0, 8, 10)], 17, 8)


def test_a_group_takes_a_gap_for_its_largest_block() -> None:
    blocks = (block(0, 9, 2), block(0, 3, 1, "a"), block(5, 9, 5, "a"), block(0, 4, 4))
    assert repacked(*blocks, keep_order=True) == [0, 2, 2, 3]


def test_nothing_changes_where_it_does_not_fit() -> None:
    parts = [RepackSlice(1, 1, 8), RepackSlice(1, 2, 9)]
    blocks = [RepackBlock(0, 9, 2, 6), RepackBlock(1, 9, 2, 8, slices=parts)]
    before = deepcopy([(b.offset, placed(b)) for b in blocks])
    assert not best_fit_repack(blocks, 3)
    assert [(b.offset, placed(b)) for b in blocks] == before
    assert best_fit_repack(blocks, 4)
    assert [(b.offset, placed(b)) for b in blocks] == [(0, []), (2, [(2, 1, 1), (3, 1, 2)])]


def test_slices_take_memory_from_their_own_start() -> None:
    early, sliced = block(0, 5, 2), block(4, 9, 4, slices=[(2, 4), (2, 6)])
    assert repacked(early, sliced, keep_order=True) == [0, 0]
    assert placed(sliced) == [(0, 2, 6), (2, 2, 4)]  # the later one lies below
    assert repacked(block(0, 3, 2), sliced, keep_order=True) == [0, 0]
    assert placed(sliced) == [(0, 2, 4), (2, 2, 6)]


def test_a_size_keeps_its_start_time_and_its_place() -> None:
    sliced = block(4, 9, 3, slices=[(2, 4), (1, 6)])
    assert repacked(block(0, 5, 1), sliced, keep_order=True) == [0, 1]
    assert placed(sliced) == [(1, 2, 4), (3, 1, 6)]


def test_slices_are_those_of_the_chunk_from_the_bottom() -> None:
    sliced = RepackBlock(4, 9, 3, 5, slices=[RepackSlice(2, 4, 6), RepackSlice(1, 6, 5)])
    assert repacked(block(0, 5, 1), sliced, keep_order=True) == [0, 0]
    assert placed(sliced) == [(0, 1, 6), (1, 2, 4)]


@pytest.mark.parametrize(("every", "starts"), [(True, [1, 3, 2]), (False, [3, 2, 1])])
def test_the_orders_of_slices_may_be_limited(every: bool, starts: list[int]) -> None:
    sliced = block(1, 9, 3, slices=[(1, 1), (1, 2), (1, 3)])
    blocks = [block(0, 0, 1), block(0, 2, 1), block(0, 1, 1), sliced]
    assert best_fit_repack(blocks, 100, every_permutation=every, keep_order=True)
    assert sliced.offset == (0 if every else 1)
    assert [start for *_, start in placed(sliced)] == starts


def test_slices_stay_off_memory_that_is_in_use_at_several_times() -> None:
    fixed = (block(9, 9, 2), block(8, 9, 2), block(0, 1, 10))
    sliced = block(0, 8, 2, slices=[(1, 0), (1, 5)])
    assert repacked(*fixed, sliced, keep_order=True) == [0, 2, 0, 9]
    assert placed(sliced) == [(9, 1, 5), (10, 1, 0)]


def test_slices_that_one_gap_does_not_suit_go_to_the_next_larger_one() -> None:
    walls = [block(0, 9, 1) for _ in range(3)]  # at 2, 9 and 13
    low = [block(0, 5, 2), walls[0], block(0, 3, 6), walls[1], block(0, 3, 3), walls[2]]
    sliced = block(4, 8, 2, slices=[(1, 4), (1, 6)])
    assert repacked(*low, sliced, keep_order=True) == [0, 2, 3, 9, 10, 13, 10]


def test_slices_that_no_order_suits_do_not_fit() -> None:
    sliced = block(1, 9, 6, slices=[(1, 1), (2, 3), (3, 2)])
    assert best_fit_repack([sliced], 100)
    assert not best_fit_repack([sliced], 100, every_permutation=False)


def test_blocks_of_a_group_are_arranged_each_for_itself() -> None:
    low = block(0, 4, 2)
    first = block(3, 5, 4, "a", [(2, 3), (2, 5)])
    second = block(7, 9, 4, "a", [(2, 7), (2, 9)])
    assert repacked(low, first, second, keep_order=True) == [0, 0, 0]
    assert [placed(first), placed(second)] == [
        [(0, 2, 5), (2, 2, 3)],
        [(0, 2, 7), (2, 2, 9)],
    ]


def test_an_offset_has_to_suit_every_block_of_a_group() -> None:
    first = block(0, 5, 4, "a", [(2, 0), (2, 3)])
    second = block(11, 19, 4, "a", [(2, 11), (2, 15)])
    for one, other in ((first, second), (second, first)):
        assert repacked(block(10, 12, 4), one, other, keep_order=True) == [0, 2, 2]
        assert placed(second) == [(2, 2, 15), (4, 2, 11)]


# -- beside a look at every byte -----------------------------------------------------------------


@st.composite
def block_lists(draw: st.DrawFn) -> list[RepackBlock]:
    blocks = []
    for _ in range(draw(st.integers(0, 7))):
        start = draw(st.integers(0, 8))
        end = draw(st.integers(start, 10))
        sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
        parts = []
        if len(sizes) > 1:
            starts = [draw(st.integers(start, end)) for _ in sizes]
            parts = list(zip(sizes, starts, strict=True))
        group = draw(st.sampled_from([None, None, "a", "b"]))
        blocks.append(block(start, end, sum(sizes), group, parts))
    return blocks


def parts_of(block: RepackBlock) -> Slices:
    return [(part.size, part.start) for part in block.slices] or [(block.size, block.start)]


def cells(
    block: RepackBlock, offset: int, parts: Slices, alignment: int = 1
) -> set[tuple[int, int]]:
    """The bytes of a block at each of its times, up to the next multiple of an alignment."""
    found = set()
    for size, start in parts:
        top = -(-(offset + size) // alignment) * alignment if size else offset
        found |= {
            (time, byte) for time in range(start, block.end + 1) for byte in range(offset, top)
        }
        offset += size
    return found


def arrangements(block: RepackBlock, every: bool) -> list[Slices]:
    parts = parts_of(block)
    starts = sorted(start for _, start in parts)
    orders = sorted(set(permutations(starts))) if every else [tuple(starts), tuple(starts[::-1])]
    found = [[(size, t) for (size, _), t in zip(parts, o, strict=True)] for o in orders]
    return [arranged for arranged in found if Counter(arranged) == Counter(parts)]


def slow_repack(
    blocks: list[RepackBlock], alignment: int, every: bool
) -> list[tuple[int, Slices]] | None:
    """The offset and the parts of each block, looked for byte by byte."""
    taken: set[tuple[int, int]] = set()
    found: dict[int, tuple[int, Slices]] = {}
    for number, first in enumerate(blocks):
        if number in found:
            continue
        alike = [
            (n, b)
            for n, b in enumerate(blocks)
            if n == number or (b.group is not None and b.group == first.group)
        ]
        if not all(arrangements(b, every) for _, b in alike):
            return None
        largest = max(b.size for _, b in alike)
        if not largest:
            found |= {n: (0, arrangements(b, every)[0]) for n, b in alike}
            continue
        late = {
            time
            for _, b in alike
            for time in range(max(start for _, start in parts_of(b)), b.end + 1)
        }
        used = {address for time, address in taken if time in late}
        top = max((address for _, address in taken), default=-1) + 1 + largest + alignment
        candidates = []
        for offset in range(0, top + 1, alignment):
            if used & set(range(offset, offset + largest)):
                continue
            choices = [
                next((p for p in arrangements(b, every) if not cells(b, offset, p) & taken), None)
                for _, b in alike
            ]
            if None not in choices:
                candidates.append((gap_length(used, offset, alignment), offset, choices))
        _, offset, choices = min(candidates, key=lambda c: c[:2])
        for (n, b), parts in zip(alike, choices, strict=True):
            assert parts is not None
            found[n] = offset, parts
            taken |= cells(b, offset, parts, alignment)
    return [found[number] for number in range(len(blocks))]


def gap_length(used: set[int], offset: int, alignment: int) -> tuple[int, int]:
    """The length, and the aligned start, of the gap around an offset."""
    low = offset
    while low > 0 and low - 1 not in used:
        low -= 1
    low = -(-low // alignment) * alignment
    above = [address for address in used if address > offset]
    return (min(above) - low if above else 10**9), low


@given(block_lists(), st.sampled_from([1, 2]), st.booleans())
def test_as_a_look_at_every_byte(blocks: list[RepackBlock], alignment: int, every: bool) -> None:
    expected = slow_repack(blocks, alignment, every)
    found = best_fit_repack(blocks, 10**6, alignment, every_permutation=every, keep_order=True)
    assert found is (expected is not None)
    if expected is not None:
        sized = [(b.offset, parts_of(b)) for b in blocks if b.size]
        assert sized == [e for b, e in zip(blocks, expected, strict=True) if b.size]


@given(block_lists(), st.integers(0, 12), st.sampled_from([1, 4]))
def test_what_is_live_never_overlaps(
    blocks: list[RepackBlock], max_size: int, alignment: int
) -> None:
    before = deepcopy([(b.offset, b.slices) for b in blocks])
    if not best_fit_repack(blocks, max_size, alignment):
        assert [(b.offset, b.slices) for b in blocks] == before
        return
    groups: dict[object, set[tuple[int, int]]] = {}
    for number, (one, (_, slices)) in enumerate(zip(blocks, before, strict=True)):
        assert one.offset is not None
        assert one.offset % alignment == 0
        assert one.offset + one.size <= max_size
        assert Counter((s.size, s.start) for s in one.slices) == Counter(
            (s.size, s.start) for s in slices
        )
        own = cells(one, one.offset, parts_of(one))
        groups.setdefault(one.group or number, set()).update(own)
    assert sum(map(len, groups.values())) == len(set().union(*groups.values()))
    for name in ("a", "b"):
        assert len({b.offset for b in blocks if b.group == name}) <= 1
