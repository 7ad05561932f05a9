"""Prefetch interval pickers: the times after which copies into alternate memory may start.

Times are positions in the flattened schedule. A copy starts after the instruction at its
(exclusive) start time and is done before the one at its end time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.use_site import UseSite


class PrefetchIntervalPicker(ABC):
    """The rule by which copies get as much time as they need, and no more."""

    retry = 0
    """The number of attempts that failed for the buffer at hand."""

    @abstractmethod
    def elapsed(self, start: int, end: int) -> float:
        """The time that passes strictly between two times of the schedule."""

    @abstractmethod
    def fits_without_copy(self, size: int, start: int, end: int) -> bool:
        """Whether a buffer may stay in alternate memory from one time to another."""

    @abstractmethod
    def preferred_eviction_end(self, size: int, start: int, latest: int) -> int:
        """The time, at most `latest`, at which an eviction that starts after `start` should end."""

    @abstractmethod
    def latest_prefetch_start(self, size: int, earliest: int, end: int, use: UseSite | None) -> int:
        """The last time after which a prefetch may start; less than `earliest` if there is none."""

    @abstractmethod
    def preferred_prefetch_start(self, size: int, earliest: int, latest: int, end: int) -> int:
        """The best time from `earliest` to `latest` after which a prefetch starts."""

    @abstractmethod
    def starts(
        self, size: int, use: UseSite | None, earliest: int, end: int, preferred: int | None = None
    ) -> Iterator[int]:
        """The times after which a prefetch for `end` may start, the best first.

        None is before `earliest`. A time that is `preferred` comes first, as far as it is possible.
        """


class InstructionCountPicker(PrefetchIntervalPicker):
    """A copy takes `min_overlap` to `max_overlap` instructions, whatever they do. All is O(1)."""

    def __init__(self, min_overlap: int, max_overlap: int) -> None:
        self.min_overlap = min_overlap
        self.max_overlap = max_overlap

    def elapsed(self, start: int, end: int) -> float:
        return max(end - start - 1, 0)

    def fits_without_copy(self, size: int, start: int, end: int) -> bool:
        return end - start <= self.max_overlap

    def preferred_eviction_end(self, size: int, start: int, latest: int) -> int:
        return min(start + self.min_overlap, latest)

    def latest_prefetch_start(self, size: int, earliest: int, end: int, use: UseSite | None) -> int:
        return end - self.min_overlap - 1

    def preferred_prefetch_start(self, size: int, earliest: int, latest: int, end: int) -> int:
        return min(max(earliest, end - self.max_overlap), latest)

    def starts(
        self, size: int, use: UseSite | None, earliest: int, end: int, preferred: int | None = None
    ) -> Iterator[int]:
        first = end - self.max_overlap if preferred is None else preferred
        yield from range(max(earliest, first), end - self.min_overlap)


class CostAnalysisPicker(PrefetchIntervalPicker):
    """A copy takes the time that it needs, while instructions run for about as long.

    A copy starts in the computation of its use. O(instructions) once; a question is
    O(log instructions · nesting of loops), so is each start that is proposed.
    """

    def __init__(
        self,
        costs: MemorySpaceCosts,
        schedule: FlatSchedule,
        *,
        min_overlap_to_async_copy_ratio: float,
        preferred_overlap_to_async_copy_ratio: float,
        max_overlap_to_mem_size_async_copy_ratio: float,
        max_size: int,
    ) -> None:
        """`max_size` is the number of bytes of alternate memory."""
        self._costs = costs
        self._min_ratio = min_overlap_to_async_copy_ratio
        self._preferred_ratio = preferred_overlap_to_async_copy_ratio
        self._most_seconds = costs.copy_seconds(max_size) * max_overlap_to_mem_size_async_copy_ratio
        self._homes = [step.parent for step in schedule.steps]
        self._times_in: dict[Computation, list[int]] = {}
        for time, home in enumerate(self._homes):
            self._times_in.setdefault(home, []).append(time)
        self._levels = list(map(costs.while_level, self._homes))
        self._shallower = _last_smaller(self._levels)
        seconds = [
            costs.scheduled_seconds(step) * costs.while_multiplier(level)
            for step, level in zip(schedule.steps, self._levels, strict=True)
        ]
        self._seconds_before = [0.0, *accumulate(seconds)]

    def elapsed(self, start: int, end: int) -> float:
        """Seconds of one run of the shallowest loop between two times, strictly inside."""
        end = min(end, len(self._levels))
        if end - start < 2:
            return 0
        before = self._seconds_before
        level = self._shallowest(max(start, 0), min(end, len(self._levels) - 1))
        return (before[end] - before[start + 1]) / self._costs.while_multiplier(level)

    def _shallowest(self, start: int, end: int) -> int:
        """The least number of loops around any time from `start` to `end`."""
        time = end
        while self._shallower[time] >= start:
            time = self._shallower[time]
        return self._levels[time]

    def fits_without_copy(self, size: int, start: int, end: int) -> bool:
        return self.elapsed(start, end) < self._most_seconds

    def preferred_eviction_end(self, size: int, start: int, latest: int) -> int:
        wanted = (1 + 2 * self.retry) * self._preferred_ratio * self._costs.copy_seconds(size)
        too_early = _last(start + 1, latest, lambda time: self.elapsed(start, time) < wanted)
        return min(too_early + 1, latest)

    def latest_prefetch_start(self, size: int, earliest: int, end: int, use: UseSite | None) -> int:
        times = self._admissible(end)
        first = bisect_left(times, earliest)
        latest = self._latest(size, times, first, end, use)
        return times[latest] if latest >= first else earliest - 1

    def preferred_prefetch_start(self, size: int, earliest: int, latest: int, end: int) -> int:
        times = self._admissible(end)
        first, last = bisect_left(times, earliest), bisect_right(times, latest) - 1
        if first > last:
            return latest
        return times[self._best(size, times, first, last, end)]

    def starts(
        self, size: int, use: UseSite | None, earliest: int, end: int, preferred: int | None = None
    ) -> Iterator[int]:
        times = self._admissible(end)
        given = bisect_left(times, earliest)
        last = self._latest(size, times, given, end, use)
        if last < given:
            return
        most = self._most_seconds
        too_early = _last(given, last, lambda n: self.elapsed(times[n], end) > most)
        first = too_early + 1
        if preferred is None or preferred > times[last]:
            time = times[self._best(size, times, first, last, end)]
        else:
            time = max(preferred, earliest)
        yield time
        step = self.elapsed(times[first], times[last]) / 100
        later, earlier = bisect_right(times, time), bisect_left(times, time) - 1
        if later > last:
            earlier = self._back(times, first, earlier, time, end, step)
        is_later_next = True
        while later <= last or earlier >= first:
            if earlier < first or (is_later_next and later <= last):
                yield times[later]
                later += 1
                is_later_next = False
                continue
            time = times[earlier]
            yield time
            earlier -= 1
            if later > last:
                earlier = self._back(times, first, earlier, time, end, step)
            is_later_next = True

    def _admissible(self, end: int) -> list[int]:
        """The times of the computation that has its instruction at `end`."""
        return self._times_in[self._homes[min(end, len(self._homes) - 1)]]

    def _latest(
        self, size: int, times: list[int], first: int, end: int, use: UseSite | None
    ) -> int:
        """The number of the last time that leaves enough to a copy; less than `first` if none."""
        needed = self._min_ratio * self._costs.copy_seconds(size)
        if use is not None:
            needed -= self._costs.gain(use)
        behind = bisect_left(times, end)
        return _last(first, behind, lambda n: self.elapsed(times[n], end) >= needed)

    def _best(self, size: int, times: list[int], first: int, last: int, end: int) -> int:
        """The number of the time that leaves about as much as preferred; the earliest of equals."""
        wanted = self._preferred_ratio * self._costs.copy_seconds(size)

        def seconds(number: int) -> float:
            return self.elapsed(times[number], end)

        longer = _last(first, last + 1, lambda n: seconds(n) >= wanted)
        nearest = [seconds(n) for n in (longer, longer + 1) if first <= n <= last]
        best = min(nearest, key=lambda elapsed: abs(elapsed - wanted))  # of equals the longer
        return _last(first, last + 1, lambda n: seconds(n) > best) + 1

    def _back(
        self, times: list[int], first: int, number: int, time: int, end: int, step: float
    ) -> int:
        """The last time up to `number` that is at least so many seconds before `time`."""
        wanted = self.elapsed(time, end) + step
        return _last(first, number + 1, lambda n: self.elapsed(times[n], end) >= wanted)


def _last(first: int, end: int, holds: Callable[[int], bool]) -> int:
    """The last number for which something holds that holds up to a number, and for none after it.

    Of those from `first` to before `end`; `first - 1` if it holds for none. O(log numbers).
    """
    return bisect_left(range(first, end), True, key=lambda number: not holds(number)) + first - 1


def _last_smaller(levels: list[int]) -> list[int]:
    """Of each number, where the last smaller one before it stands; -1 without. O(numbers)."""
    found: list[int] = []
    for place, level in enumerate(levels):
        other = place - 1
        while other >= 0 and levels[other] >= level:
            other = found[other]
        found.append(other)
    return found
