"""Scheduled modules in which work can hide a collective."""

from __future__ import annotations

from functools import partial

from tests.passes.checked_run import run_checked

from hloopt.ir import Module

schedule = partial(run_checked, "latency-hiding-scheduler")


def scheduled(body: str, more: str = "") -> str:
    return f"HloModule m, is_scheduled=true\n{more}\nENTRY e {{\n{body}\n}}"


def names(module: Module, computation: str = "e") -> list[str]:
    return [i.name for i in module.computations[computation].instructions]


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
