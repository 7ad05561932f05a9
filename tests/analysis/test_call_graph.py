"""Who calls whom."""

from __future__ import annotations

from hloopt.analysis.call_graph import callees_first, calls_by_computation, reachable_from_entry
from hloopt.text import parse_module

TEXT = """HloModule m{header}

unused {{ u = f32[] parameter(0) ROOT c0 = f32[] call(u), to_apply={{ v = f32[] parameter(0) }} }}
leaf {{ x = f32[] parameter(0) ROOT n = f32[] negate(x) }}
test {{ t = f32[] parameter(0) ROOT k = pred[] constant(true) }}
loop {{ y = f32[] parameter(0) ROOT c1 = f32[] call(y), to_apply=leaf }}
ENTRY e {{
  p = f32[] parameter(0)
  c2 = f32[] call(p), to_apply=leaf
  w = f32[] while(p), condition=test, body=loop
  ROOT c3 = f32[] call(c2), to_apply=leaf, control-predecessors={{w}}
}}
"""


def test_calls_are_listed_by_computation_in_order() -> None:
    module = parse_module(TEXT.format(header=", is_scheduled=true"))
    calls = calls_by_computation(module)
    found = {computation.name: [c.name for c in found] for computation, found in calls.items()}
    assert found == {"unused": ["c0"], "loop": ["c1"], "e": ["c2", "w", "c3"]}


def test_callees_come_first_and_every_computation_once() -> None:
    order = callees_first(parse_module(TEXT.format(header="")))
    assert [c.name for c in order] == ["_", "unused", "leaf", "loop", "test", "e"]


def test_reachable_is_what_the_entry_calls() -> None:
    module = parse_module(TEXT.format(header=""))
    reached = reachable_from_entry(module)
    assert {c.name for c in reached} == {"e", "leaf", "test", "loop"}
