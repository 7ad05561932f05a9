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


def order(**options: int) -> list[str]:
    module = parse_module(scheduled(MEMORY))
    create_pass("latency-hiding-scheduler", options).run(module, PassContext())
    return names(module)


def test_above_the_memory_limit_what_adds_least_is_scheduled_first() -> None:
    def comes_last(**options: int) -> bool:
        found = order(**options)
        return found.index("small.1") < found.index("small.2")

    assert comes_last()
    assert not comes_last(memory_limit=1)


@pytest.mark.parametrize(
    ("limit", "at_limit", "on_the_other_side"),
    [
        (128, "q large small.2 w part small.1 p s d r", "w part small.1 q large small.2 p s d r"),
        (192, "q large small.2 w part small.1 p s d r", "w part small.1 q large small.2 p s d r"),
        (256, "q large small.2 p s d w part small.1 r", "q large small.2 w part small.1 p s d r"),
        (448, "p s q large small.2 w part small.1 d r", "q large small.2 p s w part small.1 d r"),
    ],
)
def test_usage_at_the_memory_limit(limit: int, at_limit: str, on_the_other_side: str) -> None:
    """128 bytes in use are over a limit of 128, and not over half of 256; what makes them 192 or
    256 fits into as many."""
    other = limit + 4 if limit == 128 else limit - 4
    assert " ".join(order(memory_limit=limit)) == at_limit
    assert " ".join(order(memory_limit=other)) == on_the_other_side


def test_what_frees_memory_goes_last_not_what_changes_nothing() -> None:
    assert " ".join(order(memory_limit=160)) == "w part small.1 q large small.2 p s d r"


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
