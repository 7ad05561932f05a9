"""The analyses of the Python API say what the commands say, and leave the module alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hloopt
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import HloError
from hloopt.reports.memory.model import memory_report
from hloopt.reports.schedule.run import ScheduleSettings

LOOP = """HloModule m, num_partitions=2
sum { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT s = f32[] add(x, y) }
body { t = (s32[], f32[64]) parameter(0)
 i = s32[] get-tuple-element(t), index=0
 one = s32[] constant(1)
 n = s32[] add(i, one)
 v = f32[64] get-tuple-element(t), index=1
 g = f32[64] all-reduce(v), channel_id=1, replica_groups={{0,1}},
   use_global_device_ids=true, to_apply=sum
 ROOT b = (s32[], f32[64]) tuple(n, g) }
condition { t = (s32[], f32[64]) parameter(0)
 i = s32[] get-tuple-element(t), index=0
 limit = s32[] constant(3)
 ROOT c = pred[] compare(i, limit), direction=LT }
ENTRY e { p = f32[64] parameter(0)
 zero = s32[] constant(0)
 start = (s32[], f32[64]) tuple(zero, p)
 w = (s32[], f32[64]) while(start), condition=condition, body=body
 ROOT r = f32[64] get-tuple-element(w), index=1 }
"""
ANALYSES: list[Callable[[hloopt.Module], object]] = [
    hloopt.analyze_cost,
    hloopt.analyze_loops,
    hloopt.analyze_memory,
    hloopt.analyze_replication,
    hloopt.analyze_schedule,
]


@pytest.mark.parametrize("analyze", ANALYSES)
def test_the_module_stays_as_it_is(analyze: Callable[[hloopt.Module], object]) -> None:
    module = hloopt.parse_module(LOOP)
    version = module.version
    analyze(module)
    assert module.version == version
    assert not module.is_scheduled
    assert hloopt.print_module(module) == LOOP


def test_the_schedule_is_that_of_a_target_or_of_settings(root: Path) -> None:
    module = hloopt.load(str(root / "tests" / "golden" / "schedule" / "pairs.hlo"))
    plain = hloopt.analyze_schedule(module)
    assert plain.cost_model.target is None
    assert plain.module is module
    findings = hloopt.analyze_schedule(module, target="h100_sxm")
    settings = ScheduleSettings(cost_model=CostModelChoice(target="h100_sxm"))
    same = hloopt.analyze_schedule(module, settings=settings)
    assert findings.simulation.makespan == same.simulation.makespan
    assert findings.cost_model.target == "h100_sxm"
    with pytest.raises(TypeError, match="a target or settings"):
        hloopt.analyze_schedule(module, target="h100_sxm", settings=settings)
    with pytest.raises(HloError, match="h100-sxn"):
        hloopt.analyze_schedule(module, target="h100-sxn")


def test_the_memory_is_that_of_the_command() -> None:
    module = hloopt.parse_module(LOOP)
    report = hloopt.analyze_memory(module)
    same = memory_report(module)
    assert report.doubts == same.doubts != []
    assert report.statistics == same.statistics
    assert report.peak == same.peak > 0


def test_costs_are_of_all_trips_or_as_xla_counts_them() -> None:
    module = hloopt.parse_module(LOOP)
    ours, xla = hloopt.analyze_cost(module), hloopt.analyze_cost(module, as_xla=True)
    assert ours.of(module["g"]) == xla.of(module["g"])
    assert ours.of(module["w"]).flops == 3 * xla.of(module["w"]).flops + 1  # and once the condition


def test_loops_are_listed_with_their_trips() -> None:
    (loop,) = hloopt.analyze_loops(hloopt.parse_module(LOOP))
    assert (loop.name, loop.trips, loop.collectives) == ("w", 3, {"all-reduce": 1})


def test_replication_is_across_what_there_are_several_of() -> None:
    module = hloopt.parse_module(LOOP)
    analysis = hloopt.analyze_replication(module)
    assert analysis.device_count == 2
    assert analysis.is_replicated(module["g"])
    assert not analysis.is_replicated(module["p"])
    assert hloopt.analyze_replication(module, across="replicas").device_count == 1
    both = hloopt.parse_module(LOOP.replace("m, ", "m, replica_count=2, "))
    with pytest.raises(HloError, match="for 2 replicas and 2 partitions"):
        hloopt.analyze_replication(both)
    assert hloopt.analyze_replication(both, across="partitions", partial=True).device_count == 2
