"""Reports of schedules say what moves between memory spaces, and what hides it."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console
from tests.memory.spaces.spaced_modules import MODULES

from hloopt.cost_models import CostModelChoice
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.page import packed, schedule_page
from hloopt.reports.schedule.record import schedule_to_json
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.reports.schedule.terminal import render_schedule
from hloopt.reports.schedule.timeline import Timeline
from hloopt.reports.schedule.trace import schedule_trace
from hloopt.text import parse_module

EACH = pytest.mark.parametrize(
    ("name", "kind", "source", "destination"),
    [("sliced_prefetch", "slice", "HBM", "VMEM"), ("eviction", "copy", "VMEM", "HBM")],
)


def findings_of(text: str) -> ScheduleFindings:
    settings = ScheduleSettings(cost_model=CostModelChoice(target="tpu_v5e"))
    return ScheduleFindings.of(parse_module(text), settings)


@EACH
def test_json_has_both_memories(name: str, kind: str, source: str, destination: str) -> None:
    (operation,) = schedule_to_json(findings_of(MODULES[name]))["operations"]
    assert operation["kind"] == kind
    assert operation["stream"] == f"{source} to {destination}"
    assert operation["move"] == {"from": source, "to": destination}


@EACH
def test_pages_and_traces_name_both(name: str, kind: str, source: str, destination: str) -> None:
    findings = findings_of(MODULES[name])
    timeline = Timeline.of(findings)
    assert f"{source} to {destination}" in timeline.lanes
    assert f"{kind}, {source} to {destination}" in json.dumps(packed(findings, timeline))
    assert f"{source} to {destination}" in schedule_page(findings, timeline)
    events = schedule_trace(findings, timeline)["traceEvents"]
    moves = {event["args"]["move"] for event in events if "move" in event.get("args", {})}
    assert moves == {f"{source} to {destination}"}


def test_the_terminal_says_what_hides_a_move() -> None:
    stream = io.StringIO()
    render_schedule(findings_of(MODULES["sliced_prefetch"]), Console(file=stream, width=80))
    lines = [line.strip() for line in stream.getvalue().splitlines()]
    place = lines.index("moves from HBM to VMEM")
    assert lines[place - 1].endswith("%s")
    assert lines[place + 1] == "under it: %x 80 ns"


def test_a_copy_within_a_memory_is_no_move() -> None:
    found = findings_of(MODULES["eviction"].replace("S(1)", ""))
    operations = schedule_to_json(found)["operations"]
    assert [operation["move"] for operation in operations] == [None]
    events = schedule_trace(found, Timeline.of(found))["traceEvents"]
    assert not any("move" in event.get("args", {}) for event in events)
