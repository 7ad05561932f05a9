"""The part of its collectives a module hides: alone, and before and after passes."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from rich.console import Console
from tests.properties.strategies.collective_modules import collective_module_texts
from tests.reports.schedule.test_schedule import TEXT
from tests.simulation.programs import ADD
from tests.simulation.test_execution import LOOP, LOOP_ENTRY

from hloopt.analysis.latency import CostTable, FixedModel, TableModel
from hloopt.cost_models import CostModelChoice
from hloopt.files import read_module
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.reports.schedule.order import ALL_COLLECTIVES
from hloopt.reports.schedule.overlap import OverlapReport, matched, overlap_reports
from hloopt.reports.schedule.overlap_record import overlap_change_to_json, overlap_to_json
from hloopt.reports.schedule.overlap_terminal import render_overlap
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.simulation import Streams, simulate
from hloopt.simulation.collectives import CollectiveRun, collective_runs, hidden_bytes
from hloopt.text import parse_module

FIXED = ScheduleSettings()
SOL = ScheduleSettings(cost_model=CostModelChoice(target="h100_sxm"))


def looped(body: str = "body", loop: str = "loop") -> str:
    """A scheduled module with a loop of five trips that has an all-reduce."""
    inner = LOOP.replace("  body {", f"  {body} {{")
    outer = LOOP_ENTRY.replace("body=body", f"body={body}").replace("loop", loop)
    return f"HloModule looped, is_scheduled=true\n{ADD}\n{inner}\nENTRY e {{{outer}}}"


def report(text: str, settings: ScheduleSettings = FIXED) -> OverlapReport:
    return OverlapReport.of(parse_module(text), settings)


def runs(text: str, latency: dict[str, float], **node: float) -> list[CollectiveRun]:
    """Runs in which only these instructions and operations take time."""
    module = parse_module(text)
    free = {instruction.name: 0.0 for instruction in module.instructions()}
    model = TableModel(CostTable(free | node, latency), FixedModel())
    config = SchedulerConfig(schedule_send_recvs=True, send_recv_overlap_limit=2).resolved()
    return collective_runs(simulate(module, model, Streams(ResourceTracker(config))))


def test_bytes_are_hidden_as_far_as_nothing_waits() -> None:
    (found,) = runs(TEXT, {"gather": 10, "reduce": 10}, work=5)
    gather, reduce = found.operations
    assert (gather.size, hidden_bytes(gather)) == (4 * 64 * 64, 4 * 64 * 64 // 2)
    assert (reduce.size, hidden_bytes(reduce)) == (4 * 64 * 64, 0)
    assert found.exposed == 5 + 10
    (found,) = runs(TEXT, {"gather": 0, "reduce": 0})
    assert [hidden_bytes(o) for o in found.operations] == [o.size for o in found.operations]


def test_a_body_is_one_trip_and_knows_what_it_keeps() -> None:
    (found,) = runs(looped(), {"s": 10}, w=4)
    assert found.loop is not None
    assert (found.loop.name, found.run.runs) == ("loop", 5)
    assert found.exposed == 6
    assert found.state_bytes == 4 + 8 * 4
    (row,) = report(looped()).rows
    assert (row.computation, row.loop, row.runs, row.collectives) == ("body", "loop", 5, 1)
    assert report(looped()).exposed == 5 * row.exposed


def test_of_a_transfer_the_half_that_receives_has_the_bytes() -> None:
    (found,) = runs(
        """HloModule m, is_scheduled=true, num_partitions=2
ENTRY e {
  p = f32[8] parameter(0)
  t = token[] after-all()
  r = (f32[8], u32[], token[]) recv(t), channel_id=1,
    frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
  s = (f32[8], u32[], token[]) send(p, t), channel_id=1,
    frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
  h = (f32[8], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true
  hd = token[] send-done(h), channel_id=2, is_host_transfer=true
  rd = (f32[8], token[]) recv-done(r), channel_id=1
  sd = token[] send-done(s), channel_id=1
  ROOT g = f32[8] get-tuple-element(rd), index=0
}
""",
        {"r": 10, "s": 15, "h": 0},
    )
    assert [operation.start.name for operation in found.operations] == ["r", "s"]
    assert [operation.start.name for operation in found.moving] == ["r"]
    assert found.exposed == 15


def test_copies_are_no_collectives() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  s = (f32[8], f32[8], u32[]) copy-start(p)
  ROOT d = f32[8] copy-done(s)
}
"""
    assert runs(text, {"s": 10}) == []
    assert "no collectives between devices" in rendered(report(text))


# -- without a schedule ----------------------------------------------------------------------------


@given(collective_module_texts("all-reduce", "all-gather", "reduce-scatter", "collective-permute"))
@settings(max_examples=25)
def test_a_module_without_a_schedule_is_told_as_the_passes_would_schedule_it(text: str) -> None:
    found = report(text, SOL)
    assert not found.is_scheduled
    module = parse_module(text)
    create_pass("async-collective-creator", ALL_COLLECTIVES).run(module, PassContext())
    create_pass("flatten-call-graph").run(module, PassContext())
    create_pass("copy-insertion").run(module, PassContext())
    create_pass("hlo-memory-scheduler").run(module, PassContext())
    create_pass("latency-hiding-scheduler", {"target": "h100_sxm"}).run(module, PassContext())
    scheduled = OverlapReport.of(module, SOL)
    assert scheduled.is_scheduled
    assert scheduled.order == "schedule"
    assert found.rows == scheduled.rows
    for row in found.rows:
        assert 0 <= row.hidden_bytes <= row.bytes
        assert 0 <= row.exposed <= row.duration


def test_what_a_trip_gathers_for_the_next_may_run_under_the_readers_of_what_it_was_given() -> None:
    """As after pipelining: in place in the state, the collective would begin behind the dot."""
    found = report(
        """HloModule m, num_partitions=8
body {
  t = (s32[], bf16[8192,8192], bf16[1024,8192], bf16[8192,8192]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = bf16[8192,8192] get-tuple-element(t), index=1
  shard = bf16[1024,8192] get-tuple-element(t), index=2
  given = bf16[8192,8192] get-tuple-element(t), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  work = bf16[8192,8192] dot(x, given), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  later = bf16[8192,8192] all-gather(shard), dimensions={0}, replica_groups=[1,8]<=[8],
    channel_id=1, use_global_device_ids=true
  ROOT u = (s32[], bf16[8192,8192], bf16[1024,8192], bf16[8192,8192])
    tuple(next, work, shard, later)
}
condition {
  c = (s32[], bf16[8192,8192], bf16[1024,8192], bf16[8192,8192]) parameter(0)
  j = s32[] get-tuple-element(c), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(j, n), direction=LT
}
ENTRY e {
  p = (s32[], bf16[8192,8192], bf16[1024,8192], bf16[8192,8192]) parameter(0)
  ROOT w = (s32[], bf16[8192,8192], bf16[1024,8192], bf16[8192,8192]) while(p),
    condition=condition, body=body
}
""",
        SOL,
    )
    (row,) = found.rows
    assert row.hidden_bytes == row.bytes


def test_a_module_without_a_schedule_stays_as_it_is() -> None:
    module = parse_module(TEXT.replace(", is_scheduled=true", ""))
    before = str(module)
    assert "not scheduled" in OverlapReport.of(module, FIXED).order
    assert str(module) == before


@pytest.mark.slow
def test_the_schedule_it_gets_waits_no_longer_than_xla_for_gpus(shared: Path) -> None:
    """XLA's schedules of whole steps, taken away: the figures come back, or smaller ones, since
    XLA has a memory limit."""
    sol = replace(SOL, preset="xla-gpu")
    files = sorted((shared / "oracle" / "gpu").glob("*/default/after_lhs.hlo.gz"))
    assert files
    for file in files:
        module = read_module(str(file))
        as_scheduled = OverlapReport.of(module, sol).exposed
        module.set_attribute("is_scheduled", None)
        assert OverlapReport.of(module, sol).exposed <= 1.01 * as_scheduled, file


# -- before and after ------------------------------------------------------------------------------


def of_gpu(module: Module) -> Module:
    """The module with something that only XLA:GPU writes."""
    config = '{"operation_queue_id":"0"}'
    module.entry.root.set_attribute("backend_config", config)
    return module


def test_both_are_run_on_the_same_streams() -> None:
    before, after = parse_module(TEXT), of_gpu(parse_module(TEXT))
    assert [r.preset for r in overlap_reports([before], FIXED)] == ["xla-generic"]
    assert [r.preset for r in overlap_reports([before, after], FIXED)] == ["xla-gpu"] * 2
    for report in overlap_reports([before, after], FIXED):
        assert any("only one of them has what XLA:GPU writes" in note for note in report.notes)
    alike = overlap_reports([parse_module(TEXT), parse_module(TEXT)], FIXED)
    assert not any("XLA:GPU" in note for report in alike for note in report.notes)
    assert [report.preset for report in alike] == ["xla-generic"] * 2
    generic = ScheduleSettings(preset="xla-generic")
    assert [r.preset for r in overlap_reports([before, after], generic)] == ["xla-generic"] * 2


def test_computations_are_matched_by_name() -> None:
    before = report(looped())
    after = report(looped("body.clone.2"))
    assert [(a and a.computation, b and b.computation) for a, b in matched(before, after)] == [
        ("body", "body.clone.2")
    ]
    other = report(TEXT)
    assert [(a and a.computation, b and b.computation) for a, b in matched(before, other)] == [
        ("body", None),
        (None, "e"),
    ]


def test_json_has_seconds_where_cycles_are_times() -> None:
    abstract = overlap_to_json(report(TEXT))
    assert abstract["exposed"] > 0
    assert abstract["exposed_seconds"] is abstract["computations"][0]["seconds"] is None
    assert (abstract["cost_model"], abstract["target"]) == ("fixed", None)
    known = overlap_to_json(report(TEXT, SOL))
    assert known["exposed_seconds"] == pytest.approx(known["exposed"] * 1e-6)
    assert (known["cost_model"], known["target"]) == ("sol", "h100_sxm")


def test_json_of_a_change_tells_which_computations_belong_together() -> None:
    assert overlap_change_to_json(report(TEXT, SOL), report(looped(), SOL)) == {
        "more_state_bytes": 36,
        "matched": [["e", None], [None, "body"]],
    }


def rendered(before: OverlapReport, after: OverlapReport | None = None) -> str:
    stream = io.StringIO()
    render_overlap(before, after, Console(file=stream, width=80))
    return stream.getvalue()


@pytest.mark.parametrize("settings", [FIXED, SOL], ids=["fixed", "sol"])
def test_no_line_is_wider_than_the_terminal(settings: ScheduleSettings) -> None:
    long = looped("a_body_with_" + 8 * "a_long_name_", 50 * "x")
    for text in (rendered(report(long, settings)), rendered(report(long), report(TEXT))):
        assert max(map(len, text.splitlines())) <= 80
        assert "…" in text


def test_the_page_tells_both_and_what_the_figures_rest_on() -> None:
    text = rendered(report(looped().replace(", is_scheduled=true", "")), report(TEXT))
    assert "* before: order: latency-hiding-scheduler" in text
    assert "* after: order: schedule" in text
    assert "* no target: times are XLA's fixed constants" in text
    assert "state" in text.split("waits ")[-1]
