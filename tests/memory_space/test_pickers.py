"""When copies may start: both pickers, the one by costs against its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory_space.programs import Step, named, program, programs

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.costs.pickers import CostAnalysisPicker, InstructionCountPicker
from hloopt.memory_space.options.cost_options import CostOptions
from hloopt.memory_space.use_site import UseSite

# -- by the number of instructions -----------------------------------------------------------------

COUNTING = InstructionCountPicker(min_overlap=2, max_overlap=10)


@pytest.mark.parametrize(("start", "end", "fits"), [(3, 13, True), (3, 14, False), (5, 5, True)])
def test_a_value_stays_for_at_most_the_longest_overlap(start: int, end: int, fits: bool) -> None:
    assert COUNTING.fits_without_copy(8, start, end) is fits


def test_an_eviction_ends_after_the_shortest_overlap_or_when_it_must() -> None:
    assert COUNTING.preferred_eviction_end(8, 4, latest=20) == 6
    assert COUNTING.preferred_eviction_end(8, 4, latest=5) == 5


@pytest.mark.parametrize(
    ("earliest", "end", "preferred", "starts"),
    [
        (0, 14, None, range(4, 12)),
        (6, 14, None, range(6, 12)),
        (0, 14, 9, range(9, 12)),
        (0, 14, 1, range(1, 12)),  # a preferred time may be longer before the use
        (5, 14, 1, range(5, 12)),
        (0, 14, 12, []),
        (12, 14, None, []),
        (-1, 2, None, [-1]),
    ],
)
def test_starts_go_up_to_the_last_that_leaves_the_shortest_overlap(
    earliest: int, end: int, preferred: int | None, starts: list[int] | range
) -> None:
    assert list(COUNTING.starts(8, None, earliest, end, preferred)) == list(starts)
    assert COUNTING.latest_prefetch_start(8, earliest, end, None) == end - 3


def test_the_best_start_is_the_one_with_the_longest_overlap_in_bounds() -> None:
    assert COUNTING.preferred_prefetch_start(8, 0, 20, end=14) == 4
    assert COUNTING.preferred_prefetch_start(8, 7, 20, end=14) == 7
    assert COUNTING.preferred_prefetch_start(8, 0, 3, end=14) == 3


# -- by costs --------------------------------------------------------------------------------------

FIXED = {"negate": 1.0, "tanh": 4.0, "abs": 0.0, "add": 1.0}
RATIOS = {
    "min_overlap_to_async_copy_ratio": 1.0,
    "preferred_overlap_to_async_copy_ratio": 2.0,
    "max_overlap_to_mem_size_async_copy_ratio": 4.0,
}


def picker_of(
    steps: list[Step], copy: float = 3, ratios: Mapping[str, float] = RATIOS
) -> CostAnalysisPicker:
    module = program(steps)
    options = CostOptions(
        fixed_seconds_for_opcode=FIXED,
        fixed_seconds_per_instruction=0,
        fixed_seconds_per_instruction_in_alternate_memory=0.5,
        fixed_seconds_per_copy=copy,
    )
    costs = MemorySpaceCosts(module, options)
    return CostAnalysisPicker(costs, FlatSchedule.of(module), max_size=64, **ratios)


def last_use(picker: CostAnalysisPicker) -> UseSite:
    (module,) = {home.module for home in picker._homes}
    return UseSite(named(module, "last"), 1)


CHAIN: list[Step] = ["negate"] * 20
"""p0 and the predicate are at 0 and 1, the negates at 2 to 21, the use at 22."""


@pytest.mark.parametrize(
    ("earliest", "end", "preferred", "starts"),
    [
        (0, 22, None, [15, 16, 14, 17, 13, 18, 12, 11, 10, 9]),
        (14, 22, None, [15, 16, 14, 17, 18]),
        (17, 22, None, [17, 18]),
        (18, 22, None, [18]),
        (19, 22, None, []),
        (0, 22, 17, [17, 18, 16, 15, 14, 13, 12, 11, 10, 9]),
        (0, 22, 18, [18, 17, 16, 15, 14, 13, 12, 11, 10, 9]),
        (0, 22, 19, [15, 16, 14, 17, 13, 18, 12, 11, 10, 9]),
        (0, 22, 7, [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]),
        (9, 22, 7, [9, 10, 11, 12, 13, 14, 15, 16, 17, 18]),
    ],
)
def test_starts_alternate_around_the_best_one(
    earliest: int, end: int, preferred: int | None, starts: list[int]
) -> None:
    picker = picker_of(CHAIN)
    found = list(picker.starts(24, last_use(picker), earliest, end, preferred))
    assert found == starts


def test_without_a_use_the_whole_copy_has_to_be_hidden() -> None:
    picker = picker_of(["negate"] * 3)  # at 2 to 4, the use at 5
    assert picker.latest_prefetch_start(24, 0, 5, last_use(picker)) == 1
    assert picker.latest_prefetch_start(24, 2, 5, last_use(picker)) == 1  # none: before `earliest`
    picker = picker_of(["negate"] * 3, copy=3.5)
    assert picker.latest_prefetch_start(24, 0, 5, last_use(picker)) == 1
    assert picker.latest_prefetch_start(24, 0, 5, None) == -1


def test_one_long_instruction_is_better_than_no_copy() -> None:
    picker = picker_of(["abs", "tanh", "abs"], copy=0.5)  # at 2 to 4; tanh is twice the maximum
    assert picker.elapsed(2, 5) == 4
    assert list(picker.starts(24, None, 0, 5)) == [2]
    assert not picker.fits_without_copy(24, 2, 5)


def test_the_search_goes_back_in_large_steps_where_no_later_time_is_left() -> None:
    picker = picker_of(
        ["negate"] * 1000, copy=500, ratios={**RATIOS, "min_overlap_to_async_copy_ratio": 0.5}
    )
    starts = list(picker.starts(24, None, 0, 1002, preferred=751))
    window = 751 - 1 - 0  # what is between the earliest and the latest start, both outside
    assert starts[0] == 751
    gaps = {before - after for before, after in pairwise(starts)}
    assert gaps == {-(-window // 100)}


def test_a_loop_counts_with_its_trips_and_starts_stay_outside_of_it() -> None:
    picker = picker_of(["negate", ("negate", "negate"), "negate"])
    # p0 0, which 1, negate 2, condition 3 4, body 5 (negates 6 7) copy 8, while 9, negate 10
    assert picker.elapsed(2, 10) == 10
    assert picker.elapsed(5, 8) == 2  # within one trip
    assert picker.elapsed(5, 10) == 10  # from a trip to what follows the loop
    assert picker.latest_prefetch_start(24, 0, 11, None) == 2
    assert picker.latest_prefetch_start(24, 0, 8, None) == -1
    assert list(picker.starts(24, None, 0, 11)) == [2, 1, 0]


def test_no_start_in_another_branch_of_the_same_depth() -> None:
    picker = picker_of([[("tanh",), ("abs", "tanh")]])
    # p0 0, which 1, constant 2, branch 3 (tanh 4) copy 5, branch 6 (abs 7, tanh 8) copy 9
    assert picker.latest_prefetch_start(24, 0, 9, None) == 7
    assert picker.latest_prefetch_start(24, 0, 8, None) == -1


def test_a_retry_gives_evictions_more_time() -> None:
    picker = picker_of(CHAIN)
    assert picker.preferred_eviction_end(24, 2, latest=21) == 9
    picker.retry = 1
    assert picker.preferred_eviction_end(24, 2, latest=21) == 21
    assert picker.preferred_eviction_end(24, 2, latest=40) == 21


def test_times_before_and_after_the_program_count_nothing() -> None:
    picker = picker_of(["negate"])
    assert picker.elapsed(-1, 4) == picker.elapsed(0, 3) + 1
    assert picker.elapsed(3, 4) == picker.elapsed(3, 3) == picker.elapsed(4, 2) == 0
    assert picker.elapsed(2, 9) == picker.elapsed(2, 4) == 1
    assert picker.fits_without_copy(24, 3, 3)
    assert COUNTING.elapsed(3, 6) == 2
    assert COUNTING.elapsed(3, 3) == COUNTING.elapsed(3, 2) == 0


def test_a_value_stays_for_less_than_the_longest_copy() -> None:
    picker = picker_of(CHAIN)
    assert picker.fits_without_copy(24, 2, 14)  # 11 seconds of 12
    assert not picker.fits_without_copy(24, 2, 15)


def test_a_copy_for_the_next_run_may_end_with_the_program() -> None:
    picker = picker_of(CHAIN)
    assert picker.latest_prefetch_start(24, 0, 23, None) == 19
    assert list(picker.starts(24, None, 18, 23)) == [18, 19]


@pytest.mark.parametrize(
    ("steps", "earliest", "latest", "copy", "best"),
    [
        (CHAIN, 0, 18, 3, 15),
        (CHAIN, 0, 18, 3.25, 14),  # 6 and 7 seconds are as good
        (CHAIN, 16, 18, 3, 16),
        (CHAIN, 0, 13, 3, 13),
        (CHAIN, 19, 18, 3, 18),
        (CHAIN, 0, 18, 300, 0),
        (["negate", "abs", "abs", "abs", *["negate"] * 4], 0, 9, 2, 2),  # the earliest of equals
    ],
)
def test_the_best_start_leaves_about_twice_the_time_of_the_copy(
    steps: list[Step], earliest: int, latest: int, copy: float, best: int
) -> None:
    picker = picker_of(steps, copy)
    assert picker.preferred_prefetch_start(24, earliest, latest, len(steps) + 2) == best


@pytest.mark.parametrize("copy", [10, 40, 75, 100])
def test_many_starts_are_as_defined(copy: float) -> None:
    picker = picker_of(["negate"] * 400, copy)
    found = list(picker.starts(24, None, 3, 402))
    assert found == list(Definition(picker, copy, RATIOS).starts(3, 402, gain=0))


class Definition:
    """The picker as it is defined, in steps of one."""

    def __init__(self, picker: CostAnalysisPicker, copy: float, ratios: Mapping[str, float]):
        self.costs, self.homes = picker._costs, picker._homes
        steps = FlatSchedule.of(self.homes[-1].module).steps
        self.levels = [self.costs.while_level(step.parent) for step in steps]
        self.seconds = [self.costs.scheduled_seconds(step) for step in steps]
        self.minimum, self.preferred, self.maximum = (copy * ratio for ratio in ratios.values())

    def elapsed(self, start: int, end: int) -> float:
        inside = range(start + 1, end)
        total = sum(self.seconds[t] * 5.0 ** self.levels[t] for t in inside)
        return total / 5.0 ** min(self.levels[max(start, 0) : end + 1], default=0)

    def latest(self, earliest: int, end: int, gain: float) -> int:
        for time in range(end - 1, earliest - 1, -1):
            is_here = self.homes[time] is self.homes[end]
            if is_here and self.elapsed(time, end) + gain >= self.minimum:
                return time
        return earliest - 1

    def starts(self, earliest: int, end: int, gain: float) -> Iterator[int]:
        latest = self.latest(earliest, end, gain)
        here = [t for t in range(earliest, latest + 1) if self.homes[t] is self.homes[end]]
        if not here:
            return
        short = [t for t in here if self.elapsed(t, end) <= self.maximum]
        here = [t for t in here if t >= (short[0] if short else latest)]
        time = min(here, key=lambda t: (abs(self.elapsed(t, end) - self.preferred), t))
        step = self.elapsed(here[0], latest) / 100
        yield time
        later = [t for t in here if t > time]
        earlier = [t for t in here if t < time]
        is_later_next = True
        at_least = self.elapsed(time, end) + step if not later else 0
        while later or earlier:
            earlier = [t for t in earlier if self.elapsed(t, end) >= at_least]
            if later and (is_later_next or not earlier):
                yield later.pop(0)
                is_later_next = False
            elif earlier:
                time = earlier.pop()
                yield time
                at_least = self.elapsed(time, end) + step if not later else 0
                is_later_next = True


@given(
    programs(),
    st.sampled_from([0.25, 1.0, 3.0, 30.0]),
    st.sampled_from([(0.5, 1.0, 2.0), (1.0, 2.0, 12.0), (0.0, 0.0, 1.0), (2.0, 1.0, 3.0)]),
    st.data(),
)
def test_the_cost_analysis_picker_is_as_defined(
    steps: list[Step], copy: float, values: tuple[float, float, float], data: st.DataObject
) -> None:
    ratios = dict(zip(RATIOS, values, strict=True))
    picker = picker_of(steps, copy, ratios)
    model = Definition(picker, copy, ratios)
    end = data.draw(st.integers(1, len(picker._homes) - 1))
    start = data.draw(st.integers(0, end))
    use = last_use(picker) if data.draw(st.booleans()) else None
    gain = 0.5 if use else 0
    assert picker.elapsed(start, end) == model.elapsed(start, end)
    stays = model.elapsed(start, end) < model.maximum
    assert picker.fits_without_copy(24, start, end) is stays
    assert picker.latest_prefetch_start(24, start, end, use) == model.latest(start, end, gain)
    assert list(picker.starts(24, use, start, end)) == list(model.starts(start, end, gain))
    times = [t for t in range(start + 1, end) if model.elapsed(start, t) >= model.preferred]
    assert picker.preferred_eviction_end(24, start, end) == (times or [end])[0]
