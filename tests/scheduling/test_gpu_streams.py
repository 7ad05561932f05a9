"""The collectives that have to be apart where each has a stream of its own."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from hloopt.scheduling.resources.gpu_streams import DeviceGroups, share_two

_GROUPS = st.lists(st.lists(st.integers(0, 5), max_size=4).map(tuple), max_size=4).map(tuple)


def pairs(groups: DeviceGroups) -> set[tuple[int, int]]:
    return {pair for group in groups for pair in combinations(sorted(set(group)), 2)}


@given(_GROUPS, _GROUPS)
def test_groups_share_two_devices_where_they_share_a_pair(a: DeviceGroups, b: DeviceGroups) -> None:
    expected = not a or not b or not pairs(a).isdisjoint(pairs(b))
    assert share_two(a, b) == share_two(b, a) == expected


def test_groups_may_be_large() -> None:
    """With that many devices there are 10⁹ pairs."""
    everybody = (tuple(range(1 << 16)),)
    alone = tuple((device,) for device in range(1 << 16))
    assert share_two(everybody, everybody)
    assert not share_two(everybody, alone)
