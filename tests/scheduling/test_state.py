"""The parts of the scheduling state: what holds of each before every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.scheduling.asynchronous_programs import random_program
from tests.scheduling.programs import fresh_state

from hloopt.analysis.latency import FixedModel
from hloopt.ir import Computation
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.memory.pressure import Pressure
from hloopt.scheduling.resources.resource import Usage
from hloopt.scheduling.state.state import SchedulingState
from hloopt.text import parse_module

SEEDS = range(4)
CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"preset": "xla-gpu", "memory_limit": 64},
    {"preset": "xla-gpu", "parallel_collective_overlap_limit": 3},
    {"top_down_scheduling": True, "memory_limit": 64},
)
Watch = Callable[[SchedulingState, int], None]


def states_of(seed: int, **options: Any) -> Iterator[tuple[SchedulingState, list[int]]]:
    """A fresh state of each computation, and the steps that the scheduler takes from it."""
    text = random_program(seed, loops="top_down_scheduling" not in options)
    config = SchedulerConfig(**options).resolved()
    scheduling = ModuleScheduling.of(parse_module(text), config, FixedModel())
    for computation in scheduling.computations():
        yield state_and_steps(scheduling, computation)


def state_and_steps(
    scheduling: ModuleScheduling, computation: Computation
) -> tuple[SchedulingState, list[int]]:
    order = scheduling.scheduler.order(computation)
    state = fresh_state(scheduling, computation)
    steps = [state.graph.number[instruction] for instruction in order]
    return state, steps if state.top_down else steps[::-1]


@pytest.fixture(params=CONFIGS, ids=str)
def watched(request: pytest.FixtureRequest) -> Callable[[Watch], None]:
    """Calls a function with the state, and the node to come, before each step."""

    def watch(check: Watch) -> None:
        for seed in SEEDS:
            for state, steps in states_of(seed, **request.param):
                state.begin()
                for node in steps:
                    check(state, node)
                    state.take(node)

    return watch


def test_nodes_wait_are_ready_or_are_taken(watched: Callable[[Watch], None]) -> None:
    def check(state: SchedulingState, node: int) -> None:
        ready, behind = state.ready, state.direction.behind
        taken = set(state.sequence)
        waiting = [sum(b not in taken for b in edges) for edges in behind]
        assert ready.waiting == waiting
        assert {n for n, is_taken in enumerate(ready.is_taken) if is_taken} == taken
        free = {n for n, count in enumerate(waiting) if not count} - taken
        assert {*ready.nodes, *(n for n in ready.no_work if n not in taken)} == free
        assert [ready.nodes[ready.place[n]] for n in ready.nodes] == ready.nodes
        assert all(ready.place[n] < 0 for n in taken)
        assert node in free

    watched(check)


def test_what_alone_keeps_others_waiting_creates_ready_nodes(
    watched: Callable[[Watch], None],
) -> None:
    def check(state: SchedulingState, node: int) -> None:
        ready, direction = state.ready, state.direction
        alone = [n for n in direction.ahead[node] if ready.waiting[n] == 1]
        assert ready.creates_ready[node] == len(alone)

    watched(check)


def test_time_goes_on_and_ready_times_keep_latencies(watched: Callable[[Watch], None]) -> None:
    def check(state: SchedulingState, node: int) -> None:
        clock, direction = state.clock, state.direction
        edges = zip(direction.behind[node], direction.behind_latency[node], strict=True)
        earliest = max((clock.ready_time[b] + latency for b, latency in edges), default=0.0)
        assert 0 <= earliest <= clock.ready_time[node]
        assert all(clock.ready_time[done] <= clock.now for done in state.sequence)
        assert all(time >= clock.now for time in clock.becoming_ready)
        assert all(time < 0 for n, time in enumerate(clock.ready_time) if state.ready.waiting[n])

    watched(check)


def test_what_is_left_of_resources_is_what_nobody_has(watched: Callable[[Watch], None]) -> None:
    def check(state: SchedulingState, node: int) -> None:
        use = state.resources
        assert use.fits(node)
        for number, resource in enumerate(state.tracker.resources):
            if resource.limit is None:
                continue
            usages = [usage for n in state.sequence for r, usage in use.net[n] if r == number]
            in_use = usages.count(Usage.OCCUPY) - usages.count(Usage.RELEASE)
            assert use.remaining[number] == resource.limit - in_use
            if not state.top_down:  # there what was in flight stays in the books
                assert len(use.in_flight[number]) == in_use
            is_short = not use.remaining[number] and use.waiting_occupiers[number] > 0
            assert (number in use.constrained) == is_short

    watched(check)


def test_the_outlook_on_memory_is_what_comes_true(watched: Callable[[Watch], None]) -> None:
    def check(state: SchedulingState, node: int) -> None:
        memory = state.memory
        fresh = Pressure(memory.life, memory.life.states[state.graph.computation].live_below)
        for n in state.sequence:
            fresh.move(memory.allocated[n], memory.released[n], memory.inside[n])
        assert (fresh.usage, fresh.peak) == (memory.usage, memory.pressure.peak)
        for n in state.ready.nodes:
            own = fresh.outlook(memory.allocated[n], memory.released[n], memory.inside[n])
            if memory.minds_limit and not state.graph.is_done[n]:  # which is seen with its start
                assert memory.outlook(n) == own
        memory.look()
        assert memory.is_near_limit == (memory.minds_limit and memory.usage > memory.limit // 2)
        assert memory.is_over_limit == (memory.minds_limit and memory.usage >= memory.limit)

    watched(check)
