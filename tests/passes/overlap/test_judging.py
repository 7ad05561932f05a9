"""Figures of programs: marks of collectives as synchronous change none of them."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.ir import Module
from hloopt.ir.attributes.backend_config import is_sync
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.overlap import judging
from hloopt.passes.overlap.decisions import Draft, run_passes
from hloopt.passes.overlap.judging import Judge
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.text import parse_module

JUDGE = Judge(OverlapOptions(target="h100_sxm"))
PROGRAM = """
HloModule m, is_scheduled=true, num_partitions=8

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  p = f32[] parameter(0)
  start = f32[] all-reduce-start(p), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}},
    use_global_device_ids=true, to_apply=add,
    backend_config={"collective_backend_config":{"is_sync":true}}
  ROOT done = f32[] all-reduce-done(start)
}
"""
"""The all-reduce takes less time than its start does where it is asynchronous."""


def test_a_mark_that_comes_behind_the_scheduler_makes_a_step_no_shorter() -> None:
    marked = JUDGE.figures(parse_module(PROGRAM))
    given = JUDGE.figures(parse_module(PROGRAM.replace("true}}", "false}}")))
    assert given.scheduler_seconds == pytest.approx(marked.scheduler_seconds, rel=1e-9)


def test_judging_leaves_marks_as_they_are() -> None:
    module = parse_module(PROGRAM)
    assert is_sync(JUDGE.judge(Draft(module), module).module["start"])


@pytest.mark.parametrize(("limit", "minded"), [(1 << 30, [None]), (1, [1])])
def test_an_order_is_searched_once_within_a_limit_that_is_minded_where_it_must_be(
    monkeypatch: pytest.MonkeyPatch, limit: int, minded: list[int | None]
) -> None:
    searched: list[Any] = []

    def run(module: Module, passes: list[Any]) -> None:
        searched.extend(
            options["device_memory_size"]
            for name, options in (each for each in passes if isinstance(each, tuple))
            if name == "latency-hiding-scheduler" and options["search"]
        )
        run_passes(module, passes)

    monkeypatch.setattr(judging, "run_passes", run)
    judge = Judge(OverlapOptions(target="h100_sxm", memory_limit=limit))
    module = parse_module(PROGRAM)
    create_pass("synchronize-collectives").run(module, PassContext())
    create_pass("hlo-descheduler").run(module, PassContext())
    judge.finish(Draft(module), {"iterations": 10, "seed": 0, "memory_limit": limit})
    assert searched == minded
