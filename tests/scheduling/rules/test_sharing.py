"""Operations that share a resource."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling.rules.plain_sharing import Shared

from hloopt.scheduling.state.sharing import SharedResource

_STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "delete"]), st.integers(0, 5), st.integers(0, 6)),
    max_size=12,
)


@given(_STEPS)
@settings(max_examples=40)
def test_each_of_several_operations_makes_its_share_of_progress(
    steps: list[tuple[str, int, int]],
) -> None:
    """Times between steps, and latencies, are few, so that ends coincide with steps."""
    resource: SharedResource[int] = SharedResource()
    plain: Shared[int] = Shared()
    now = 0.0
    for number, (step, pause, amount) in enumerate(steps):
        now += pause
        if step == "add":
            resource.add(number, amount, now)
            plain.add(number, amount, now)
        else:
            assert resource.delete(amount, now) == (amount in plain.operations)
            plain.delete(amount, now)
        expected = plain.finish()
        assert sorted(resource.operations) == sorted(expected)
        assert resource.finish == sorted(resource.finish)
        for operation, finish in expected.items():
            assert resource.finish_of(operation) == pytest.approx(finish)
        assert resource.finish_of(99) is None


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_the_example_of_xla(order: tuple[int, ...]) -> None:
    resource: SharedResource[int] = SharedResource()
    for latency in order:
        resource.add(latency, latency, 0.0)
    assert (resource.operations, resource.finish) == ([1, 2, 3], [3, 5, 6])


def test_what_ends_early_leaves_its_share_to_the_others() -> None:
    resource: SharedResource[str] = SharedResource()
    for name, latency in (("short", 4), ("long", 10)):
        resource.add(name, latency, 0.0)
    assert resource.finish == [8, 14]
    assert resource.delete("short", 2.0)
    assert (resource.operations, resource.finish) == (["long"], [11])
    assert not resource.delete("short", 2.0)
    assert resource.finish_of("short") is None
