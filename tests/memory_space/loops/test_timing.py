"""The estimated time of an iteration, by hand-computed cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory_space.loops.unrolled import costs, time_of, unrolled

from hloopt.memory_space.loop_optimizer.timing import IterationTimes, RepeatedCopy
from hloopt.memory_space.loop_optimizer.values import loop_values
from hloopt.memory_space.program import Program

STEPS = [f"{name}{{i}} = add(w, w)" for name in "abcd"]
SLOW, FAST = 1.5, 0.375
"""The seconds of a step in default and in alternate memory; the latter leaves all of them idle."""


def times(*, is_fast: bool) -> IterationTimes:
    module = unrolled(STEPS)
    program, start = Program.of(module), time_of(module, "a_1")
    found = IterationTimes(program, costs(module), start, 4)
    if is_fast:
        for value in loop_values(program, found.costs, start, start + 4, lambda buffer: True):
            found.add(value)
    return found


def test_steps_take_their_time_and_leave_bandwidth() -> None:
    assert times(is_fast=False).elapsed(1) == SLOW
    assert times(is_fast=False).idle(1) == 0
    assert times(is_fast=True).elapsed(1) == FAST
    assert times(is_fast=True).idle(1) == FAST


@pytest.mark.parametrize(
    ("copies", "missing"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([(1, 3, 0.375)], 0, id="hidden by one step"),
        pytest.param([(1, 3, 0.5)], 0.125, id="partly hidden"),
        pytest.param([(2, 3, 0.5)], 0.5, id="not hidden"),
        pytest.param([(-2, 1, 0.75)], 0, id="hidden in the iteration before, too"),
        pytest.param([(-2, 1, 1.0)], 0.25, id="longer than that"),
        pytest.param([(-2, 1, 0.5), (-2, 1, 0.5)], 0.25, id="two share what is idle"),
        pytest.param([(0, 2, 0.75), (0, 3, 0.375)], 0.375, id="one waits, the other goes on"),
        pytest.param([(-1, 1, 0.5), (1, 3, 0.25)], 0.125, id="one after the other"),
        pytest.param([(-4, 1, 1.5)], 0, id="a whole iteration"),
        pytest.param([(-5, 0, 1.625)], 0.125, id="more than one iteration"),
    ],
)
def test_a_step_waits_for_the_rest_of_its_copies(
    copies: list[tuple[int, int, float]], missing: float
) -> None:
    repeated = [RepeatedCopy(*copy) for copy in copies]
    assert times(is_fast=True).simulate(repeated) == pytest.approx(4 * FAST + missing)


def test_nothing_is_hidden_where_default_memory_is_busy() -> None:
    assert times(is_fast=False).simulate([RepeatedCopy(-3, 3, 0.5)]) == 4 * SLOW + 0.5


@given(st.lists(st.tuples(st.integers(-1, 2), st.floats(0, 2)), max_size=4))
def test_a_copy_costs_at_most_its_own_time(copies: list[tuple[int, float]]) -> None:
    found = times(is_fast=True).simulate([RepeatedCopy(s, 3, seconds) for s, seconds in copies])
    total = sum(seconds for _, seconds in copies)
    assert 4 * FAST - 1e-9 <= found <= 4 * FAST + total + 1e-9
    assert found >= total - 1e-9  # default memory moves all of it
