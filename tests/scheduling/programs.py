"""Scheduled modules in which work can hide a collective."""

from __future__ import annotations

from functools import partial

from tests.passes.checked_run import run_checked

from hloopt.ir import Computation, Module
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.state.state import SchedulingState

schedule = partial(run_checked, "latency-hiding-scheduler")


def scheduled(body: str, more: str = "") -> str:
    return f"HloModule m, is_scheduled=true\n{more}\nENTRY e {{\n{body}\n}}"


def names(module: Module, computation: str = "e") -> list[str]:
    return [i.name for i in module.computations[computation].instructions]


def copies_of_slices(rest: str) -> str:
    """A module that copies two slices from the host, `done0` and `done1`, before the rest."""
    sliced = "dynamic-slice(array, index), dynamic_slice_sizes={4}"
    config = 'backend_config={"dynamic_slice_config":{"byte_offset":"0","byte_stride":"0"}}'
    more = body = ""
    for n in range(2):
        more += f"""
slice{n} {{
  array = f32[8]{{0:S(5)}} parameter(0)
  index = s32[] parameter(1)
  ROOT s{n}.root = f32[4] {sliced}, {config}
}}
wrapper{n} {{
  w.array = f32[8]{{0:S(5)}} parameter(0)
  w.index = s32[] parameter(1)
  ROOT f{n} = f32[4] fusion(w.array, w.index), kind=kLoop, calls=slice{n}
}}"""
        body += f"""
  start{n} = ((f32[8]{{0:S(5)}}, s32[]), f32[4], u32[]) async-start(a, i), calls=wrapper{n}
  done{n} = f32[4] async-done(start{n})"""
    head = f"a = f32[8]{{0:S(5)}} parameter(0) i = s32[] parameter(1) {body}"
    return scheduled(f"{head}\n{rest}", more)


def fresh_state(scheduling: ModuleScheduling, computation: Computation) -> SchedulingState:
    """The state before the first step; the computation was scheduled once."""
    scheduler = scheduling.scheduler
    scheduler.order(computation)
    graph, config = scheduler.graphs[computation], scheduler.config
    return SchedulingState(graph, config, scheduler.tracker, scheduler.life, config.limit)


GATHER = """
  p = f32[8] parameter(0)
  q = f32[16] parameter(1)
  s = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[16] all-gather-done(s)
  a = f32[16] negate(q)
  b = f32[16] negate(a)
  ROOT r = f32[16] add(d, b)
"""

SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
