"""Operations that share a resource."""

from __future__ import annotations

from random import Random

import pytest
from tests.scheduling.rules.plain_sharing import Shared

from hloopt.scheduling.state.sharing import SharedResource


@pytest.mark.parametrize("seed", range(60))
def test_each_of_several_operations_makes_its_share_of_progress(seed: int) -> None:
    """Times between steps, and latencies, are few, so that ends coincide with steps."""
    rng = Random(seed)
    resource: SharedResource[int] = SharedResource()
    plain: Shared[int] = Shared()
    now = 0.0
    for number in range(12):
        now += rng.randrange(6)
        if rng.random() < 0.65:
            latency = rng.randrange(7)
            resource.add(number, latency, now)
            plain.add(number, latency, now)
        else:
            ended = rng.randrange(8)
            assert resource.delete(ended, now) == (ended in plain.operations)
            plain.delete(ended, now)
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
