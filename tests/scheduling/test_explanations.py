"""The reasons for an order: decisions that are explained, and latency that stays exposed."""

from __future__ import annotations

import re

from tests.scheduling.programs import GATHER, scheduled

from hloopt.analysis.latency import FixedModel
from hloopt.analysis.latency.statistics import schedule_statistics
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.explain import Explainer
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.text import parse_module


def test_explanations_say_what_was_ready_and_which_rule_decided() -> None:
    module = parse_module(scheduled(GATHER))
    config = SchedulerConfig().resolved()
    scheduling = ModuleScheduling.of(module, config, FixedModel())
    explainer = scheduling.scheduler.explainer = Explainer(lambda i: i.name in ("d", "b"))
    schedule_and_report(scheduling, PassContext())
    first, second = explainer.decisions.values()
    assert first.instruction.name == "d"
    assert {node.instruction.name for node in first.ready} == {"d", "b"}
    assert [(c.better.name, c.worse.name, c.rule) for c in first.comparisons] == [
        ("d", "b", "kScheduleDone")
    ]
    assert first.step == 1
    assert second.sentence() == "step 2, at 2 cycles: of 2 candidates better than %s by kLessStall"
    assert explainer.decisions[first.instruction] is first


def test_exposed_latency_has_a_reason() -> None:
    def remarks(body: str, **options: object) -> dict[str, str]:
        context = PassContext("latency-hiding-scheduler")
        create_pass("latency-hiding-scheduler", options).run(parse_module(scheduled(body)), context)
        return {remark.instruction: f"{remark.kind}: {remark.reason}" for remark in context.remarks}

    assert remarks(GATHER)["s"].startswith("missed: 4,996 of 5,000 cycles are exposed: by depend")
    second = (
        GATHER.replace("ROOT r = f32[16] add(d, b)", "")
        + """
  s.2 = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d.2 = f32[16] all-gather-done(s.2)
  ROOT r = (f32[16], f32[16], f32[16]) tuple(d, d.2, b)"""
    )
    assert "the overlap limit of kAllGather (1) holds %d back" in remarks(second)["s.2"]
    light = remarks(GATHER, target="h100_sxm")["s"]
    assert re.match(r"missed: [\d.]+ of [\d.]+ us are exposed: by", light)
    copied = """p = f32[8] parameter(0) s = (f32[8], f32[8], u32[]) copy-start(p)
      ROOT d = f32[8] copy-done(s)"""
    assert "5,000 cycles" in remarks(copied)["s"]
    guessed = remarks(copied, target="h100_sxm")["s"]
    assert "us, a guess, are" in guessed
    assert "5,000" not in guessed


def test_statistics_count_what_dones_wait_for() -> None:
    module = parse_module(scheduled(GATHER))
    config = SchedulerConfig().resolved()
    tracker = ModuleScheduling.of(module, config, FixedModel()).scheduler.tracker
    order = list(module.entry.instructions)
    found = schedule_statistics(order, FixedModel(), tracker.is_start, tracker.is_done)
    assert found.total_wasted == 4999  # the done follows at once, and takes 1
    assert found.total_cycles == 7 + 4999
    assert {str(kind) for kind in found.wasted} == {"all-gather"}
