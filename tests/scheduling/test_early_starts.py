"""The option that lets collectives of XLA:GPU start before all compute, and when it has a say."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduling.programs import names, schedule, scheduled

WORK = [f"w{n}" for n in range(8)]


def what_begins(**options: Any) -> str:
    """The first of eight loop fusions and the start of a collective as long as five.

    It needs another collective, so that no other rule looks at it.
    """
    callees = "\n".join(
        f"f{n} {{ x{n} = f32[8] parameter(0) ROOT y{n} = f32[8] negate(x{n}) }}"
        for n in range(len(WORK))
    )
    work = "\n".join(
        f"{name} = f32[8] fusion(p), kind=kLoop, calls=f{n}" for n, name in enumerate(WORK)
    )
    body = f"""
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  {work}
  t = (f32[8], f32[16]) all-gather-start(q), dimensions={{0}}
  e.1 = f32[16] all-gather-done(t)
  s = (f32[16], f32[32]) all-gather-start(e.1), dimensions={{0}}
  d = f32[32] all-gather-done(s)
  ROOT r = tuple(d, {", ".join(WORK)})
"""
    order = names(schedule(scheduled(body, callees), **options))
    return next(name for name in order if name in ("s", *WORK))


EARLY = {
    "preset": "xla-gpu",
    "collective_start_as_early_as_possible": True,
    "parallel_collective_overlap_limit": 2,
}


def test_a_collective_starts_before_all_compute() -> None:
    assert what_begins(**EARLY) == "s"


@pytest.mark.parametrize(
    "other",
    [
        {"collective_start_as_early_as_possible": False},
        {"parallel_collective_overlap_limit": 1},
        {"aggressive_scheduling_policies": False},
        {"preset": "xla-generic"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_each_condition_is_needed(other: dict[str, object]) -> None:
    """Elsewhere it starts as soon as enough work is behind it."""
    assert what_begins(**{**EARLY, **other}) != "s"
