"""The times by which the scheduler goes: cost tables, profiles, targets."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from tests.scheduling.programs import GATHER, names, schedule, scheduled

from hloopt.diagnostics import PassRefused, PipelineError
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


def test_a_cost_table_says_what_hides_what(tmp_path: Path) -> None:
    table = tmp_path / "costs.json"
    body = """
  p = f32[8] parameter(0)
  q = f32[16] parameter(1)
  s = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[16] all-gather-done(s)
  a = f32[16] negate(q)
  ROOT r = f32[16] add(d, a)
"""
    table.write_text(json.dumps({"node": {"a": 50}, "latency": {"s": 40}}))
    run = partial(schedule, cost_model="table", cost_table=str(table))
    found = names(run(scheduled(body)))
    assert found.index("s") < found.index("a") < found.index("d")
    table.write_text('{"node": {"a": -1}}')
    with pytest.raises(PipelineError, match="0 or more"):
        run(scheduled(body))
    table.write_text("[]")
    with pytest.raises(PipelineError, match="not a cost table"):
        run(scheduled(body))


def test_what_has_no_cost_is_reported(tmp_path: Path) -> None:
    table = tmp_path / "costs.json"
    table.write_text('{"node": {}}')
    context = PassContext("latency-hiding-scheduler")
    options = {"cost_model": "table", "cost_table": str(table)}
    module = parse_module(scheduled(GATHER))
    create_pass("latency-hiding-scheduler", options).run(module, context)
    assert context.statistics["instructions of unknown time"] == 7
    assert any("does not know its time" in remark.reason for remark in context.remarks)


def test_a_file_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "costs.json"
    table.write_text('{"node": {}}')
    with pytest.raises(PipelineError, match="'fixed' does not read the cost_table"):
        schedule(scheduled(GATHER), cost_model="fixed", cost_table=str(table))


def test_a_profile_says_what_hides_what(tmp_path: Path) -> None:
    profile = tmp_path / "pgle.pbtxt"
    profile.write_text('costs { name: "s" cost_us: 40 }')
    context = PassContext("latency-hiding-scheduler")
    options = {"preset": "xla-gpu", "profile": str(profile)}
    module = parse_module(scheduled(GATHER))
    create_pass("latency-hiding-scheduler", options).run(module, context)
    assert context.statistics["instructions of unknown time"] >= 1
    with pytest.raises(PassRefused, match=r"Found \d+ missing instructions") as caught:
        schedule(
            scheduled(GATHER),
            preset="xla-gpu",
            profile=str(profile),
            pgle_accuracy_checker="error",
        )
    assert "the profile does not name %" in str(caught.value.help)


def test_the_speed_of_light_of_a_target() -> None:
    schedule(scheduled(GATHER), preset="xla-gpu", target="h100_sxm")
    with pytest.raises(PipelineError, match="knows too little of the target cpu"):
        schedule(scheduled(GATHER), cost_model="sol", target="cpu")
    with pytest.raises(PipelineError, match="no target 'h10'") as caught:
        schedule(scheduled(GATHER), target="h10")
    assert caught.value.code == "HLO014"
