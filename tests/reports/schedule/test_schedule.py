"""Schedules as text, data, pages and traces."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.simulation.programs import ADD
from tests.simulation.test_execution import LOOP, LOOP_ENTRY

from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import HloError
from hloopt.reports.console.units import CycleUnit
from hloopt.reports.schedule.comparison import NotCompared, compare_schedules
from hloopt.reports.schedule.comparison_record import schedule_change_to_json
from hloopt.reports.schedule.comparison_terminal import render_schedule_change
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.group_sizes import group_size
from hloopt.reports.schedule.record import schedule_to_json
from hloopt.reports.schedule.run import ScheduleSettings, set_devices
from hloopt.reports.schedule.terminal import render_schedule
from hloopt.simulation.hiding import Reason
from hloopt.text import parse_module

TEXT = f"""HloModule step, is_scheduled=true, num_partitions=8
{ADD}
square {{
  x1 = f32[64,64] parameter(0)
  ROOT dot = f32[64,64] dot(x1, x1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
ENTRY e {{
  p = f32[8,64] parameter(0)
  q = f32[64,64] parameter(1)
  gather = (f32[8,64], f32[64,64]) all-gather-start(p), channel_id=1, dimensions={{0}},
    replica_groups={{{{0,1,2,3,4,5,6,7}}}}, use_global_device_ids=true,
    metadata={{op_name="jit(f)/gather"}}
  work = f32[64,64] fusion(q), kind=kLoop, calls=square
  gathered = f32[64,64] all-gather-done(gather)
  reduce = f32[64,64] all-reduce-start(gathered), channel_id=2, replica_groups={{}}, to_apply=add
  reduced = f32[64,64] all-reduce-done(reduce)
  ROOT r = f32[64,64] add(reduced, work)
}}
"""
LOOPED = f"HloModule looped, is_scheduled=true\n{ADD}\n{LOOP}\nENTRY e {{{LOOP_ENTRY}}}"


def find(text: str = TEXT, **settings: Any) -> ScheduleFindings:
    return ScheduleFindings.of(parse_module(text), ScheduleSettings(**settings))


def rendered(findings: ScheduleFindings, width: int = 80) -> str:
    stream = io.StringIO()
    render_schedule(findings, Console(file=stream, width=width))
    return stream.getvalue()


# -- text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("text", [TEXT, LOOPED])
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    for line in rendered(find(text), width).splitlines():
        assert len(line) <= width


def test_the_page_says_what_waits_and_why() -> None:
    page = rendered(find())
    assert "Schedule of step, order: schedule\nby fixed constants, preset xla-generic\n" in page
    assert re.search(r"makespan +10\.0 k cycles", page)
    assert re.search(r"5\.0 k +1 +5\.0 k +1 +16\.0 KiB +8 +%reduce", page)
    assert re.search(r"4\.0 k +1\.0 k +5\.0 k +1 +16\.0 KiB +8 +%gather", page)
    assert "nothing left to run: the 1.0 k cycles" in page
    assert "under it: %work 1.0 k" in page
    assert "no target: times are XLA's fixed constants, abstract units" in page


def test_the_picture_shows_work_waiting_and_streams() -> None:
    page = rendered(find())
    (main,) = (line for line in page.splitlines() if "main stream" in line)
    (gather,) = (line for line in page.splitlines() if line.strip().startswith("all-gather ━"))
    assert main.count("░") > 5 * main.count("█")
    assert gather.count("━") in (31, 32)  # 5,000 of 10,000 cycles in 63 columns


def test_a_module_without_a_schedule_gets_one_and_says_so() -> None:
    findings = find(TEXT.replace(", is_scheduled=true", ""))
    assert findings.order.endswith("(the module is not scheduled)")
    assert findings.order.partition(" ")[0] in ("list", "dfs", "post-order")
    assert "(the module is not scheduled)" in rendered(findings)


def test_collectives_that_are_not_asynchronous_are_told() -> None:
    text = TEXT.replace("all-reduce-start", "all-reduce").replace("all-reduce-done", "copy")
    whole = next(h for _, h in find(text).hidings if h.operation.start.name == "reduce")
    assert whole.reason is Reason.SYNCHRONOUS
    assert "synchronous: the program waits for all of it at once" in rendered(find(text))
    (note,) = [note for note in find(text, loops="cost").notes if "not asynchronous" in note]
    assert note.endswith("%reduce")


def test_a_limit_is_compared_with_the_peak() -> None:
    assert "1.0 MiB left" not in rendered(find())
    assert re.search(r"limit +1\.0 KiB .* too little", rendered(find(memory_limit=1024)))


def test_memory_has_arguments_and_what_is_alive_beside_them() -> None:
    memory = find().memory
    assert memory.arguments == 4 * (8 * 64 + 64 * 64)
    assert memory.peak == memory.arguments + max(max(usage) for usage in memory.usage.values())


def sizes(findings: ScheduleFindings) -> dict[str, int | None]:
    return {
        h.operation.start.name: group_size(h.operation, findings.devices)
        for _, h in findings.hidings
    }


def test_devices_that_the_header_does_not_name_meet() -> None:
    assert sizes(find(TEXT.replace(", num_partitions=8", ""))) == {"gather": 8, "reduce": 8}


def test_a_formula_may_stand_for_any_number_of_devices() -> None:
    groups = "[1,1000000000]<=[1000000000]"
    many = TEXT.replace("replica_groups={}", f"replica_groups={groups}, use_global_device_ids=true")
    findings = find(many, cost_model=CostModelChoice(target="h100_sxm"))
    assert sizes(findings) == {"gather": 8, "reduce": 10**9}


def test_devices_take_part_in_groups_that_name_none() -> None:
    module = parse_module(TEXT)
    set_devices(module, 32)
    findings = ScheduleFindings.of(module, ScheduleSettings())
    assert sizes(findings) == {"gather": 8, "reduce": 32}
    with pytest.raises(HloError, match="no multiple of the module's 4 replicas"):
        set_devices(parse_module(TEXT.replace("num_part", "replica_count=4, num_part")), 6)


# -- data -----------------------------------------------------------------------------------------


def test_json_adds_up() -> None:
    found = json.loads(json.dumps(schedule_to_json(find(LOOPED))))
    assert found["exposed"] == sum(found["exposed_by_kind"].values())
    assert found["exposed"] == sum(o["exposed"] * o["runs"] for o in found["operations"])
    durations = {c["name"]: c["duration"] for c in found["computations"]}
    assert durations["e"] == found["makespan"]
    (operation,) = found["operations"]
    assert operation["latency"] == operation["hidden"] + operation["exposed"]
    assert operation["reason"] == "nothing left to run"
    assert operation["runs"] == 5
    assert max(size for _, size in found["memory"]["timeline"]) == found["memory"]["peak"]


def test_figures_of_xla_are_beside_ours() -> None:
    found = schedule_to_json(find())
    (entry,) = found["computations"]
    assert entry["xla"]["total_cycles"] == found["makespan"]
    assert entry["xla"]["wasted_cycles"] == found["exposed_by_kind"]


@pytest.mark.parametrize(
    ("cycles", "abstract", "real"), [(5000.0, "5.0 k", "5.0 ms"), (0.5, "0.5", "500 ns")]
)
def test_cycles_are_times_where_the_model_knows_times(
    cycles: float, abstract: str, real: str
) -> None:
    assert CycleUnit(None).text(cycles) == abstract
    assert CycleUnit(None).label(cycles) == f"{abstract} cycles"
    assert CycleUnit(1e-6).label(cycles) == real


def test_a_target_gives_times() -> None:
    findings = find(cost_model=CostModelChoice(target="h100_sxm"))
    assert findings.unit.seconds == 1e-6
    assert re.search(r"makespan +[\d.]+ us", rendered(findings))


# -- before and after -----------------------------------------------------------------------------

BEHIND = TEXT.replace("  work = f32[64,64] fusion(q), kind=kLoop, calls=square\n", "").replace(
    "  ROOT r", "  work = f32[64,64] fusion(q), kind=kLoop, calls=square\n  ROOT r"
)


def test_two_schedules_are_compared() -> None:
    change = compare_schedules(parse_module(BEHIND), parse_module(TEXT))
    assert change is not None
    stream = io.StringIO()
    render_schedule_change(change, Console(file=stream, width=80))
    table = stream.getvalue()
    assert re.search(r"makespan +11\.0 k +10\.0 k +-9\.1%", table)
    assert re.search(r"all-gather +5\.0 k +4\.0 k +-20\.0%", table)
    assert re.search(r"all-reduce +5\.0 k +5\.0 k +=", table)
    data = schedule_change_to_json(change)
    assert data["before"]["exposed"] - data["after"]["exposed"] == 1000


def test_two_schedules_are_compared_by_the_model_asked_for(tmp_path: Path) -> None:
    choice = CostModelChoice(target="b200")
    change = compare_schedules(parse_module(BEHIND), parse_module(TEXT), choice)
    assert change is not None
    assert change.after is not None
    assert change.after.makespan == find(cost_model=choice).simulation.makespan
    stream = io.StringIO()
    render_schedule_change(change, Console(file=stream, width=80))
    assert "* times by speed of light on NVIDIA B200" in stream.getvalue()
    data = schedule_change_to_json(change)
    assert (data["cost_model"], data["target"]) == ("sol", "b200")
    missing = CostModelChoice(profile=str(tmp_path / "none.pbtxt"))
    with pytest.raises(HloError, match="cannot read"):
        compare_schedules(parse_module(BEHIND), parse_module(TEXT), missing)


def rendered_change(before: str, after: str, **how: Any) -> str:
    """The comparison of two texts with the codes of its colours."""
    change = compare_schedules(parse_module(before), parse_module(after), **how)
    assert change is not None
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=True, color_system="standard")
    render_schedule_change(change, console)
    return stream.getvalue()


H100 = CostModelChoice(target="h100_sxm")
GREEN, RED = "\x1b[32m", "\x1b[31m"
GPU = TEXT.replace("=8", '=8, frontend_attributes={fingerprint_before_lhs="1"}', 1)


def test_only_times_are_better_or_worse() -> None:
    better = rendered_change(BEHIND, TEXT, cost_model=H100)
    assert GREEN in better
    assert RED not in better
    worse = rendered_change(TEXT, BEHIND, cost_model=H100)
    assert RED in worse
    assert GREEN not in worse
    abstract = rendered_change(BEHIND, TEXT)
    assert "-9.1%" in abstract
    assert "no target: times are XLA's fixed constants" in abstract
    assert GREEN not in abstract
    assert " us" not in abstract


def assert_no_verdict(text: str, why: str) -> None:
    assert f"figures only, no verdict: {why}" in text
    assert "%" not in text.split("no verdict")[0]
    assert GREEN not in text
    assert RED not in text


def test_there_is_no_verdict_where_one_is_not_scheduled() -> None:
    unscheduled = TEXT.replace(", is_scheduled=true", "")
    assert_no_verdict(
        rendered_change(unscheduled, TEXT, cost_model=H100), "the first is not scheduled"
    )
    after = rendered_change(TEXT, unscheduled, cost_model=H100)
    assert_no_verdict(after, "the second is not scheduled")
    assert re.search(r"makespan +[0-9.]+ us +-", re.sub("\x1b[^m]*m", "", after))


def test_there_is_no_verdict_where_nothing_is_known_of_a_time(tmp_path: Path) -> None:
    table = tmp_path / "t.json"
    table.write_text('{"node": {"work": 1, "r": 1}, "latency": {"gather": 9}}')
    text = rendered_change(BEHIND, TEXT, cost_model=CostModelChoice(cost_table=str(table)))
    assert_no_verdict(text, "nothing is known of how long %reduce takes in the first")
    table.write_text('{"node": {"work": 1, "r": 1}, "latency": {"gather": 9, "reduce": 9}}')
    known = rendered_change(BEHIND, TEXT, cost_model=CostModelChoice(cost_table=str(table)))
    assert "no verdict" not in known


def test_there_is_no_verdict_on_what_may_not_be_partitioned() -> None:
    text = rendered_change(
        *(UNPARTITIONED.replace("negate(a)", f"{op}(a)") for op in ("negate", "abs")),
        cost_model=H100,
    )
    assert_no_verdict(text, "the module is not partitioned over its 8 devices")
    with pytest.raises(NotCompared, match="the first is not partitioned, the second is"):
        compare_schedules(parse_module(UNPARTITIONED), parse_module(TEXT), H100)


UNPARTITIONED = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY e {
  p = f32[8,8] parameter(0), sharding={devices=[8,1]<=[8]}
  a = f32[8,8] custom-call(p), custom_call_target="Sharding", sharding={devices=[8,1]<=[8]}
  ROOT r = f32[8,8] negate(a)
}
"""


def test_modules_that_are_for_different_streams_are_not_compared() -> None:
    modules = parse_module(TEXT), parse_module(GPU)
    for pair in (modules, modules[::-1]):
        for model in (None, H100):
            with pytest.raises(NotCompared, match="--preset takes one of them for both"):
                compare_schedules(*pair, model)
    for preset in ("xla-gpu", "xla-generic"):
        change = compare_schedules(*modules, H100, preset=preset)
        assert change is not None
        assert change.preset == preset
        assert change.before is not None
        assert change.after is not None
        assert change.before.makespan == change.after.makespan
    versions = compare_schedules(*modules, H100, are_versions=True)
    assert versions is not None
    assert versions.preset == "xla-gpu"


def test_without_a_schedule_there_is_nothing_to_compare() -> None:
    text = TEXT.replace(", is_scheduled=true", "")
    modules = parse_module(text), parse_module(text)
    assert compare_schedules(*modules) is None
    with pytest.raises(NotCompared, match="neither module is scheduled"):
        compare_schedules(*modules, H100)
    with pytest.raises(NotCompared, match="neither module is scheduled"):
        compare_schedules(*modules, preset="xla-gpu")


def test_who_asks_for_times_gets_those_of_schedules_without_operations() -> None:
    entry = "ENTRY e { p = f32[8] parameter(0) ROOT n = f32[8] abs(p) }"
    text = f"HloModule m, is_scheduled=true {entry}"
    modules = parse_module(text), parse_module(text.replace("abs", "negate"))
    assert compare_schedules(*modules) is None
    change = compare_schedules(*modules, H100)
    assert change is not None
    assert schedule_change_to_json(change)["after"]["makespan"] > 0
    assert "guessed, for the model does not know: 100.0% of the first" in " ".join(change.notes)


def test_a_first_schedule_has_nothing_before_it() -> None:
    unscheduled = parse_module(TEXT.replace(", is_scheduled=true", ""))
    change = compare_schedules(unscheduled, parse_module(TEXT))
    assert change is not None
    assert change.before is None
    assert compare_schedules(parse_module(TEXT), unscheduled) is None


def test_without_asynchronous_operations_nothing_is_compared() -> None:
    text = "HloModule m, is_scheduled=true\nENTRY e { ROOT p = f32[] parameter(0) }"
    assert compare_schedules(parse_module(text), parse_module(text)) is None
    module = parse_module(TEXT)
    assert compare_schedules(module, module) is None
