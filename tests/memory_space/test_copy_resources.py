"""The time that instructions leave to copies while asynchronous operations run."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.memory_space.programs import named

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.options.cost_options import CostOptions
from hloopt.text import parse_module

OPTIONS = CostOptions(default_mem_bandwidth_bytes_per_second=32)

ASYNC = """HloModule m, is_scheduled=true
ENTRY e { p = f32[8] parameter(0)
  a = f32[8] negate(p)
  first = ((f32[8]), f32[8]) custom-call-start(p), custom_call_target="f"
  b = f32[8] negate(a)
  second = ((f32[8]), f32[8]) custom-call-start(p), custom_call_target="g"
  c = f32[8] negate(b)
  first-done = f32[8] custom-call-done(first)
  d = f32[8] negate(c)
  second-done = f32[8] custom-call-done(second)
  e0 = f32[8] negate(d)
  ROOT r = (f32[8], f32[8], f32[8]) tuple(e0, first-done, second-done) }
"""


@pytest.mark.parametrize(
    ("factors", "resources"),
    [
        ({}, [2, 2, 2, 2, 2]),
        ({"first": 0.5}, [2, 1, 1, 2, 2]),
        ({"first": 0.5, "second": 0.25}, [2, 1, 0.25, 0.5, 2]),
        ({"first": 0, "second": 0.5}, [2, 0, 0, 1, 2]),
        ({"a": 0.5}, [2, 2, 2, 2, 2]),
        ({"p": 0.0}, [0, 0, 2, 2, 2]),
        ({"r": 0.0, "none": 0.0}, [2, 2, 2, 2, 2]),
    ],
)
def test_asynchronous_operations_leave_a_part_of_the_resources_until_they_are_done(
    factors: Mapping[str, float], resources: list[float]
) -> None:
    module = parse_module(ASYNC)
    schedule = FlatSchedule.of(module)
    costs = MemorySpaceCosts(module, OPTIONS)
    found = costs.copy_resources(schedule, factors)
    names = [step.name for step in schedule.steps]
    assert [found[names.index(name)] for name in ("a", "b", "c", "d", "e0")] == resources


UPDATED = """HloModule m, is_scheduled=true
work { wp = f32[8] parameter(0)
  ROOT w0 = f32[8] negate(wp) }
ENTRY e { p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], s32[]) async-start(p), calls=work
  a = f32[8] negate(p)
  u = ((f32[8]), f32[8], s32[]) async-update(s)
  b = f32[8] negate(a)
  d = f32[8] async-done(u)
  ROOT c = f32[8] add(b, d) }
"""


def test_an_update_is_not_the_done() -> None:
    module = parse_module(UPDATED)
    costs = MemorySpaceCosts(module, OPTIONS)
    schedule = FlatSchedule.of(module)
    found = costs.copy_resources(schedule, {"s": 0.5})
    times = [schedule.times[named(module, name)] for name in ("a", "b", "c")]
    assert [found[time] for time in times] == [1, 1, 3]
