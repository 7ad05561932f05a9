"""Times of a module before fusion: of kernels that fusion would make, calls inlined."""

from __future__ import annotations

from hloopt.cost_models import CostModelChoice
from hloopt.reports.schedule.latency import LatencyReport, analyze_latency
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.text import parse_module

UNFUSED = """HloModule m
twice { a = f32[1024,1024] parameter(0) ROOT b = f32[1024,1024] add(a, a) }
ENTRY e {
  p = f32[1024,1024] parameter(0)
  n = f32[1024,1024] negate(p)
  c = f32[1024,1024] call(n), to_apply=twice
  s = f32[1024,1024] sine(c)
  ROOT r = f32[1024,1024] tanh(s)
}
"""
KERNEL = 2 * (4 << 20) / 2765e9 * 1e6
"""Microseconds of reading an array and writing one on a TPU v5p."""


def report(choice: CostModelChoice) -> LatencyReport:
    return analyze_latency(parse_module(UNFUSED), ScheduleSettings(cost_model=choice))


def test_a_call_is_fused_with_what_is_around_it() -> None:
    found = report(CostModelChoice(target="tpu_v5p"))
    busy = [row for row in found.instructions if row.time.cycles]
    assert [row.instruction.name for row in busy] == ["r"]
    assert abs(busy[0].time.cycles - KERNEL) < 1e-6
    assert found.guessed_share == 0


def test_the_report_says_what_times_before_fusion_are() -> None:
    (notice,) = report(CostModelChoice(target="tpu_v5p")).notices
    assert "times before fusion are estimates of what a compiler that fuses loops would" in notice
    abstract = report(CostModelChoice())
    assert "values that fusion keeps out of memory count" in abstract.notices[0]
    assert abstract.guessed_share is None
    assert any(row.kind == "add" for row in abstract.instructions)


def test_what_sol_does_not_know_is_guessed_by_kernels_of_fusion() -> None:
    found = report(CostModelChoice(target="h100_sxm"))
    busy = [row for row in found.instructions if row.time.cycles]
    assert [row.instruction.name for row in busy] == ["r"]
    assert found.guessed_share == 1
