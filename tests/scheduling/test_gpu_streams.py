"""The collectives that have to be apart where each has a stream of its own."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scheduling.programs import names, scheduled

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.scheduling.resources.gpu_streams import DeviceGroups, groups_of_start, share_two
from hloopt.text import parse_module

_GROUPS = st.lists(st.lists(st.integers(0, 5), max_size=4).map(tuple), max_size=4).map(tuple)


def pairs(groups: DeviceGroups) -> set[tuple[int, int]]:
    return {pair for group in groups for pair in combinations(sorted(set(group)), 2)}


@given(_GROUPS, _GROUPS)
def test_groups_share_two_devices_where_they_share_a_pair(a: DeviceGroups, b: DeviceGroups) -> None:
    expected = not a or not b or not pairs(a).isdisjoint(pairs(b))
    assert share_two(a, b) == share_two(b, a) == expected


def test_the_groups_of_a_start_are_those_of_what_it_wraps() -> None:
    module = parse_module("""
HloModule m, is_scheduled=true, replica_count=4
ENTRY e {
  p = f32[8] parameter(0)
  w.s = ((f32[8]), f32[8]) all-to-all-start(p), replica_groups={{0,2},{1,3}}, dimensions={0}
  w.d = f32[8] all-to-all-done(w.s)
  g.s = (f32[8], f32[16]) all-gather-start(p), replica_groups={{0,1},{2,3}}, dimensions={0}
  g.d = f32[16] all-gather-done(g.s)
  ROOT r = (f32[8], f32[16]) tuple(w.d, g.d)
}
""")
    named = {i.name: i for i in module.entry.instructions}
    assert groups_of_start(named["w.s"]) == ((0, 2), (1, 3))
    assert groups_of_start(named["g.s"]) == ((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("second", "expected"),
    [("replica_groups={{0,1},{2,3}}", ((0, 2), (1, 3), (0, 1), (2, 3))), ("replica_groups={}", ())],
)
def test_a_group_of_collectives_meets_where_any_of_them_does(
    second: str, expected: DeviceGroups
) -> None:
    module = parse_module(f"""
HloModule m, is_scheduled=true, replica_count=4
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
both {{
  p = f32[8] parameter(0)
  ar = f32[8] all-reduce(p), replica_groups={{{{0,2}},{{1,3}}}}, to_apply=sum
  n = f32[8] negate(p)
  br = f32[8] all-reduce(n), {second}, to_apply=sum
  ROOT t = (f32[8], f32[8]) tuple(ar, br)
}}
ENTRY e {{
  p = f32[8] parameter(0)
  s = ((f32[8]), (f32[8], f32[8]), u32[]) async-start(p), calls=both,
    frontend_attributes={{_collectives_group=""}}
  ROOT d = (f32[8], f32[8]) async-done(s)
}}
""")
    (start,) = module.instructions(Opcode.ASYNC_START)
    assert groups_of_start(start) == expected


def test_groups_may_be_large() -> None:
    """With that many devices there are 10⁹ pairs."""
    everybody = (tuple(range(1 << 16)),)
    alone = tuple((device,) for device in range(1 << 16))
    assert share_two(everybody, everybody)
    assert not share_two(everybody, alone)


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("{0,1},{2,3}", "{0,2},{1,3}", True),
        ("{0,1},{2,3}", "{0,1},{2,3}", False),
        ("{0,1},{2,3}", "", False),
    ],
)
def test_collectives_that_share_two_devices_are_apart(
    first: str, second: str, *, together: bool
) -> None:
    """Each of two gathers could hide the other."""
    body = f"""
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  s = (f32[8], f32[16]) all-gather-start(p), replica_groups={{{first}}}, dimensions={{0}}
  d = f32[16] all-gather-done(s)
  t = (f32[8], f32[16]) all-gather-start(q), replica_groups={{{second}}}, dimensions={{0}}
  e = f32[16] all-gather-done(t)
  ROOT r = (f32[16], f32[16]) tuple(d, e)
"""

    def overlap(*, has_streams: bool) -> bool:
        module = parse_module(scheduled(body))
        options = {
            "preset": "xla-gpu",
            "parallel_collective_overlap_limit": 2,
            "enable_collective_multi_streaming": has_streams,
        }
        create_pass("latency-hiding-scheduler", options).run(module, PassContext())
        order = names(module)
        return max(map(order.index, "st")) < min(map(order.index, "de"))

    assert overlap(has_streams=False)
    assert overlap(has_streams=True) == together


def test_branches_need_what_the_first_of_them_does_that_needs_any() -> None:
    """One copy in flight leaves room for one more; the second branch overlaps two."""
    more = """
one {
  x = f32[8] parameter(0)
  t0 = (f32[8], f32[8], u32[]) copy-start(x)
  ROOT d0 = f32[8] copy-done(t0)
}
two {
  y = f32[8] parameter(0)
  t1 = (f32[8], f32[8], u32[]) copy-start(y)
  t2 = (f32[8], f32[8], u32[]) copy-start(y)
  d1 = f32[8] copy-done(t1)
  d2 = f32[8] copy-done(t2)
  ROOT a = f32[8] add(d1, d2)
}
"""
    body = """
  p = f32[8] parameter(0)
  i = s32[] parameter(1)
  s = (f32[8], f32[8], u32[]) copy-start(p)
  w = f32[8] conditional(i, p, p), branch_computations={BRANCHES}
  d = f32[8] copy-done(s)
  ROOT r = (f32[8], f32[8]) tuple(w, d)
"""

    def is_hidden(branches: str, *, has_streams: bool) -> bool:
        module = parse_module(scheduled(body.replace("BRANCHES", branches), more))
        options = {"preset": "xla-gpu", "enable_collective_multi_streaming": has_streams}
        create_pass("latency-hiding-scheduler", options).run(module, PassContext())
        order = names(module)
        return order.index("s") < order.index("w") < order.index("d")

    assert is_hidden("one, two", has_streams=True)
    assert not is_hidden("two, one", has_streams=True)
    assert not is_hidden("one, two", has_streams=False)
