"""The start times of the slices of a prefetch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence


def pick_slice_starts(
    slices: int,
    start: int,
    end: int,
    elapsed: Callable[[int, int], float],
    is_beside: Callable[[int], bool],
) -> list[int]:
    """The exclusive start time of each slice of a prefetch, ascending.

    The first one is `start`; the others are where equal shares of the time to `end` have passed.
    All are `start` where there is no time between, or no room for a second start.

    Args:
        slices: The number of slices, at least 1.
        start: The exclusive start of the prefetch, -1 or later.
        end: The time at which the prefetch ends.
        elapsed: The seconds strictly between two times.
        is_beside: Whether a time is in the same computation as `start`. Only such times start
            slices.
    """
    total = elapsed(start, end)
    starts = [start]
    passed = start
    candidate = start + 1
    while candidate <= end - 2 and len(starts) < slices:
        if elapsed(candidate, end) < total * (slices - len(starts)) / slices:
            starts.append(passed)
            continue
        if is_beside(candidate) and elapsed(passed, candidate + 1) > 0:
            passed = candidate
        candidate += 1
    return starts + [passed] * (slices - len(starts))


def slice_time_permutations(starts: Sequence[int], *, every: bool) -> Iterator[tuple[int, ...]]:
    """The start times in the orders in which the slices of a chunk may have them, none twice.

    The first one is ascending: the slice at the lowest offset starts first. All orders follow in
    lexicographic order, or without `every` the descending one alone.
    """
    times = sorted(starts)
    if every:
        yield from _orders(times)
        return
    yield tuple(times)
    if times and times[0] != times[-1]:
        yield tuple(reversed(times))


def _orders(times: list[int]) -> Iterator[tuple[int, ...]]:
    """All distinct orders of sorted times, in lexicographic order."""
    if not times:
        yield ()
    for number, first in enumerate(times):
        if number and times[number - 1] == first:
            continue
        for rest in _orders(times[:number] + times[number + 1 :]):
            yield (first, *rest)
