"""The memory limit of the scheduler."""

from __future__ import annotations

import pytest
from tests.scheduling.programs import names, schedule, scheduled

from hloopt.diagnostics import PipelineError
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.scheduling.config import SchedulerConfig
from hloopt.text import parse_module

MEMORY = """
  p = f32[8] parameter(0)
  q = f32[1024] parameter(1)
  w = f32[16] parameter(2)
  s = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[16] all-gather-done(s)
  part = f32[16] negate(w)
  large = f32[1024] negate(q)
  small.1 = f32[16] sine(part)
  small.2 = f32[16] slice(large), slice={[0:16]}
  ROOT r = (f32[16], f32[16], f32[16]) tuple(small.1, small.2, d)
"""


def test_above_the_memory_limit_what_adds_least_is_scheduled_first() -> None:
    def comes_last(**options: int) -> bool:
        module = parse_module(scheduled(MEMORY))
        create_pass("latency-hiding-scheduler", options).run(module, PassContext())
        found = names(module)
        return found.index("small.1") < found.index("small.2")

    assert comes_last()
    assert not comes_last(memory_limit=1)


def test_reruns_end_when_the_peak_fits() -> None:
    for limit in (1, 4096, 1 << 30):
        schedule(scheduled(MEMORY), memory_limit=limit, rerun=3, estimate_fragmentation_size=True)


def test_the_limit_is_what_arguments_and_results_leave() -> None:
    """XLA:GPU's sizes: arrays of 8 bytes, a table of 16, nothing on the host."""
    text = """HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}) }
ENTRY e { p = f32[2] parameter(0)
  q = f32[2]{0:S(5)} parameter(1)
  n = f32[2] negate(p)
  ROOT r = (f32[2], f32[2]{0:S(5)}) tuple(n, q) }
"""
    config = SchedulerConfig(preset="xla-gpu", device_memory_size=124)
    assert config.resolved(parse_module(text)).memory_limit == (124 - 8 - 8 - 16 + 8) * 95 // 100
    small = SchedulerConfig(preset="xla-gpu", device_memory_size=20)
    assert small.resolved(parse_module(text)).memory_limit == 0
    with pytest.raises(PipelineError, match="cannot both be given"):
        SchedulerConfig(preset="xla-gpu", device_memory_size=124, memory_limit=5)
