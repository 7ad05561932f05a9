"""The order of scheduling groups that one instruction makes ready: that of its edges."""

from __future__ import annotations

import pytest
from tests.scheduling.programs import names, schedule, scheduled

from hloopt.ir.schedule import set_schedule
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


def group(number: int) -> str:
    return f', frontend_attributes={{_scheduling_group_id="{number}"}}'


@pytest.mark.parametrize("first", [1, 2])
def test_bottom_up_by_edges_from_predecessors(first: int) -> None:
    """`r` makes both groups ready; its first edge is to the one that does not appear first."""
    body = f"""
  q = f32[8] parameter(1)
  p = f32[8] parameter(0)
  early = f32[8] negate(p){group(first)}
  other = f32[8] negate(p){group(3 - first)}
  late = f32[8] negate(early){group(first)}
  s = (f32[8], f32[16]) all-gather-start(q), dimensions={{0}}
  d = f32[16] all-gather-done(s)
  ROOT r = (f32[8], f32[8], f32[16]) tuple(other, late, d)
"""
    order = names(schedule(scheduled(body)))
    assert [name for name in order if name in ("early", "other", "late")] == [
        *("early", "late", "other"),
    ]


@pytest.mark.parametrize("first", [1, 2])
def test_top_down_by_edges_to_successors(first: int) -> None:
    """`n` makes both groups ready; its first edge is to the one that does not appear first."""
    body = f"""
  q = f32[8] parameter(1)
  p = f32[8] parameter(0)
  early = f32[8] negate(p){group(first)}
  n = f32[8] negate(p)
  other = f32[8] negate(n){group(3 - first)}
  late = f32[8] negate(n){group(first)}
  s = (f32[8], f32[16]) all-gather-start(q), dimensions={{0}}
  d = f32[16] all-gather-done(s)
  ROOT r = (f32[8], f32[8], f32[8], f32[16]) tuple(early, other, late, d)
"""
    order = names(schedule(scheduled(body), top_down_scheduling=True))
    found = [name for name in order if name in ("early", "other", "late")]
    assert found[0] == "other"


def test_the_order_is_that_of_xla() -> None:
    """The order that XLA:GPU's compiler gives two operations in groups."""
    body = f"""
  q = f32[32] parameter(1)
  ags = (f32[32], f32[64]) all-gather-start(q), dimensions={{0}}{group(2)}
  p = f32[32] parameter(0)
  cps = (f32[32], f32[32]) collective-permute-start(p), source_target_pairs={{{{0,1}}}}{group(1)}
  cpd = f32[32] collective-permute-done(cps){group(1)}
  agd = f32[64] all-gather-done(ags){group(2)}
  ROOT r = (f32[64], f32[32]) tuple(agd, cpd)
"""
    order = names(schedule(scheduled(body), preset="xla-gpu"))
    assert order == ["p", "q", "ags", "agd", "cps", "cpd", "r"]


def test_members_are_listed_by_themselves() -> None:
    """What else is ready does not disturb the order in which members become ready."""
    body = """
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  g = f32[8] custom-call(p), custom_call_target="__cublas$gemm", GROUP
  t = (f32[8], f32[16]) all-gather-start(q), dimensions={0}, GROUP
  u = f32[16] all-gather-done(t), GROUP
  h = f32[8] custom-call(q), custom_call_target="__cublas$gemm", GROUP
  s = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}, GROUP
  d = f32[8] collective-permute-done(s), GROUP
  y = f32[8] exponential(q)
  ROOT r = (f32[8], f32[16], f32[8], f32[8], f32[8]) tuple(g, u, h, d, y)
""".replace("GROUP", 'frontend_attributes={_scheduling_group_id="1"}')
    module = schedule(scheduled(body), preset="xla-gpu", parallel_collective_overlap_limit=2)
    assert names(module) == ["q", "y", "p", "t", "s", "g", "h", "u", "d", "r"]


def test_groups_that_wait_for_nothing_come_in_the_order_before_the_schedule() -> None:
    """Nobody reads either; XLA:GPU's compiler puts the group last that it lists first."""
    pairs = "source_target_pairs={{0,1}}"
    lines = {
        "p": "f32[8] parameter(0)",
        "q": "f32[64] parameter(1)",
        "s": f"(f32[8], f32[8]) collective-permute-start(p), {pairs}{group(1)}",
        "d": f"f32[8] collective-permute-done(s){group(1)}",
        "t": f"(f32[64], f32[128]) all-gather-start(q), dimensions={{0}}{group(2)}",
        "u": f"f32[128] all-gather-done(t){group(2)}",
        "ROOT r": "f32[8] negate(p)",
    }

    def last_group(listed: str, order: str) -> str:
        """The done that comes later, of a module that is given a schedule if `order` is one."""
        body = "\n".join(f"{n} = {lines[n]}" for n in (*listed, "ROOT r"))
        text = scheduled(body)
        module = parse_module(text.replace(", is_scheduled=true", "") if order else text)
        if order:
            found = {i.name: i for i in module.entry.instructions}
            set_schedule(module, {module.entry: [found[name] for name in (*order, "r")]})
        create_pass("latency-hiding-scheduler", {"preset": "xla-gpu"}).run(module, PassContext())
        return max("du", key=names(module).index)

    assert last_group("pqsdtu", "") == "d"
    assert last_group("pqtusd", "") == "u"
    assert last_group("pqsdtu", "pqtusd") == "d"
