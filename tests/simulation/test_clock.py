"""Time as the main stream and the operations beside it pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.programs import scheduled

from hloopt.ir import Instruction
from hloopt.simulation import Operation, Stream
from hloopt.simulation.clock import Clock, SharedClock


@pytest.fixture(scope="module")
def token() -> Instruction:
    """Any instruction: clocks do not look at them."""
    return scheduled("ROOT p = f32[] parameter(0)").entry.root


ANY = Stream("any", None)
NewOperation = Callable[..., Operation]


@pytest.fixture
def operation(token: Instruction) -> NewOperation:
    def make(latency: float, stream: Stream = ANY) -> Operation:
        return Operation(token, token, stream, latency)

    return make


CLOCKS = pytest.mark.parametrize("clock", [Clock, SharedClock])


@CLOCKS
def test_work_hides_latency(clock: type[Clock], operation: NewOperation) -> None:
    time, gather = clock(), operation(10.0)
    time.run(5.0)
    time.launch(gather)
    time.run(7.0)
    time.wait(gather)
    assert time.now == 15
    assert (gather.begin, gather.finish, gather.needed) == (5, 15, 12)
    assert (gather.exposed, gather.hidden) == (3, 7)


@CLOCKS
def test_what_is_over_is_not_waited_for(clock: type[Clock], operation: NewOperation) -> None:
    time, gather = clock(), operation(3.0)
    time.launch(gather)
    time.run(7.0)
    time.wait(gather)
    assert (time.now, gather.exposed, gather.hidden) == (7, 0, 3)


@CLOCKS
def test_a_full_stream_begins_an_operation_when_another_ends(
    clock: type[Clock], operation: NewOperation
) -> None:
    time, stream = clock(), Stream("one", 1)
    first, second = operation(10.0, stream), operation(10.0, stream)
    time.launch(first)
    time.run(1.0)
    time.launch(second)
    time.wait(second)
    assert (second.issued, second.begin, second.queued, time.now) == (1, 10, 9, 20)


@CLOCKS
def test_a_stream_with_room_for_two(clock: type[Clock], operation: NewOperation) -> None:
    time, stream = clock(), Stream("two", 2)
    operations = [operation(latency, stream) for latency in (10.0, 4.0, 3.0)]
    for each in operations:
        time.launch(each)
    time.wait(operations[2])
    assert operations[2].begin == 4
    assert time.now == 7


def test_two_that_want_all_the_bandwidth_get_half_of_it(operation: NewOperation) -> None:
    time, copy = SharedClock(), operation(10.0)
    time.launch(copy, demand=1.0)
    time.run(4.0, demand=1.0)
    assert time.now == 8  # half as fast
    time.wait(copy)
    assert time.now == 14  # the other 6 at full speed
    assert copy.hidden == pytest.approx(4)


def test_who_wants_little_gets_it(operation: NewOperation) -> None:
    time, copy = SharedClock(), operation(8.0)
    time.launch(copy, demand=1.0)
    time.run(5.0, demand=0.2)
    assert time.now == 5
    time.wait(copy)
    assert time.now == pytest.approx(5 + 8 - 5 * 0.8)


def test_what_is_within_the_bandwidth_is_not_slowed_down(operation: NewOperation) -> None:
    time, copy = SharedClock(), operation(8.0)
    time.launch(copy, demand=0.5)
    time.run(8.0, demand=0.5)
    time.wait(copy)
    assert time.now == 8


Steps = list[tuple[str, int, int, bool]]
"""What happens, how long it takes, how many quarters of the bandwidth it wants, and whether its
stream takes one operation at a time."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("run", "launch", "wait")),
        st.integers(0, 30),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=25,
)


def play(time: Clock, steps: Steps, token: Instruction, *, demands: bool) -> list[Operation]:
    """Run steps; the operations, all waited for."""
    operations: list[Operation] = []
    waiting: list[Operation] = []
    for what, amount, quarters, is_limited in steps:
        demand = quarters / 4 if demands else 0.0
        if what == "run":
            time.run(float(amount), demand)
        elif what == "launch":
            stream = Stream("one", 1) if is_limited else ANY
            operations.append(Operation(token, token, stream, float(amount)))
            waiting.append(operations[-1])
            time.launch(operations[-1], demand)
        elif waiting:
            time.wait(waiting.pop(amount % len(waiting)))
    for operation in waiting:
        time.wait(operation)
    return operations


@given(STEPS)
def test_without_demands_sharing_changes_nothing(steps: Steps) -> None:
    token = scheduled("ROOT p = f32[] parameter(0)").entry.root
    plain, shared = Clock(), SharedClock()
    expected = play(plain, steps, token, demands=False)
    found = play(shared, steps, token, demands=False)
    assert shared.now == pytest.approx(plain.now)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.begin, ours.finish) == pytest.approx((theirs.begin, theirs.finish))


@given(STEPS)
def test_sharing_never_makes_anything_faster_and_uses_what_there_is(steps: Steps) -> None:
    token = scheduled("ROOT p = f32[] parameter(0)").entry.root
    plain, shared = Clock(), SharedClock()
    play(plain, steps, token, demands=True)
    found = play(shared, steps, token, demands=True)
    assert shared.now >= plain.now - 1e-6
    for operation in found:
        assert operation.finish - operation.begin >= operation.latency - 1e-6
