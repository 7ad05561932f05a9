"""The lower bound of memory over all orders of a module's instructions."""

from __future__ import annotations

import pytest

from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.memory.floor import memory_floor
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

KIB = 1024
CHAIN = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[256] parameter(0)
  a = f32[512] broadcast(p), dimensions={}
  b = f32[512] negate(a)
  c = f32[512] add(a, b)
  ROOT r = f32[256] slice(c), slice={[0:256]}
}
""".replace("f32[256] parameter(0)", "f32[] parameter(0)")
LOOP = """HloModule m, is_scheduled=true
body {
  s = (s32[], f32[1024], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1024] get-tuple-element(s), index=1
  y = f32[1024] get-tuple-element(s), index=2
  wide = f32[4096] concatenate(x, x, x, x), dimensions={0}
  z = f32[1024] slice(wide), slice={[0:1024]}
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT t = (s32[], f32[1024], f32[1024]) tuple(n, z, y)
}
condition {
  s = (s32[], f32[1024], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  two = s32[] constant(2)
  ROOT c = pred[] compare(i, two), direction=LT
}
ENTRY e {
  p = f32[] parameter(0)
  zero = s32[] constant(0)
  x = f32[1024] broadcast(p), dimensions={}
  y = f32[1024] negate(x)
  s = (s32[], f32[1024], f32[1024]) tuple(zero, x, y)
  l = (s32[], f32[1024], f32[1024]) while(s), condition=condition, body=body
  a = f32[1024] get-tuple-element(l), index=1
  b = f32[1024] get-tuple-element(l), index=2
  ROOT r = f32[1024] add(a, b)
}
"""


def test_operands_are_alive_together() -> None:
    floor = memory_floor(parse_module(CHAIN), backend=GPU)
    assert floor.instruction.name == "c"
    assert 4 * KIB <= floor.size < 4.5 * KIB


def test_the_state_of_a_loop_is_alive_around_its_body() -> None:
    floor = memory_floor(parse_module(LOOP), backend=GPU)
    assert floor.instruction.name in ("wide", "z")
    assert 24 * KIB <= floor.size < 25 * KIB


def test_arguments_are_always_there() -> None:
    text = "HloModule m, is_scheduled=true\nENTRY e { p = f32[1024] parameter(0) q = f32[1024] "
    text += "parameter(1) ROOT n = f32[1024] negate(p) }"
    assert 12 * KIB <= memory_floor(parse_module(text), backend=GPU).size < 13 * KIB


def test_host_memory_does_not_count() -> None:
    text = CHAIN.replace("f32[512]", "f32[512]{0:S(5)}")
    assert memory_floor(parse_module(text), backend=GPU).size < 2 * KIB


@pytest.mark.parametrize("text", [CHAIN, LOOP])
@pytest.mark.parametrize("algorithm", ["list", "dfs", "post-order", "bfs"])
def test_no_order_needs_less(text: str, algorithm: str) -> None:
    module = parse_module(text)
    create_pass("hlo-memory-scheduler", {"algorithm": algorithm}).run(module, PassContext())
    allocated = analyze_memory(module, backend=GPU).statistics.total_allocation_bytes
    assert memory_floor(module, backend=GPU).size <= allocated


def test_a_module_without_a_schedule_has_the_floor_of_its_schedules() -> None:
    scheduled = memory_floor(parse_module(CHAIN), backend=GPU)
    unscheduled = memory_floor(parse_module(CHAIN.replace(", is_scheduled=true", "")), backend=GPU)
    assert unscheduled.size == scheduled.size
