"""Schedules on one axis of time: every trip, every call, nothing idle that is not."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.reports.html.pages import column_texts
from tests.reports.scheduled_modules import loop, nested, run_loop
from tests.simulation.programs import programs

from hloopt.analysis.latency import TableModel
from hloopt.files import read_module
from hloopt.ir import Module
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.frames import Frame
from hloopt.reports.schedule.page import packed
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.reports.schedule.timeline import MOST_LEVELS, Rest, Timeline, Visit
from hloopt.reports.schedule.trace import schedule_trace
from hloopt.targets import load_target
from hloopt.text import parse_module

TESTDATA = Path(__file__).resolve().parents[3] / "testdata"
Piece = tuple[float, float, str]


def find(text: str, **settings: Any) -> tuple[ScheduleFindings, Timeline]:
    findings = ScheduleFindings.of(parse_module(text), ScheduleSettings(**settings))
    return findings, Timeline.of(findings)


def by_lane(timeline: Timeline) -> dict[int, list[Piece]]:
    """Every slice of a whole run, as begin, end and name."""
    lanes: dict[int, list[Piece]] = {}
    for visit in timeline.visits():
        assert isinstance(visit, Visit)
        for piece in visit.frame.slices:
            begin, end = (visit.begin + time * visit.scale for time in (piece.begin, piece.end))
            lanes.setdefault(piece.lane, []).append((begin, end, piece.instruction.name))
    return {lane: sorted(pieces) for lane, pieces in lanes.items()}


def runs_in(timeline: Timeline) -> Counter[str]:
    """The number of times each computation is there, by name."""
    visits = [visit for visit in timeline.visits() if isinstance(visit, Visit)]
    return Counter(visit.frame.run.computation.name for visit in visits)


def check(findings: ScheduleFindings, timeline: Timeline) -> None:
    """Nothing overlaps in a lane, the main stream has no gap, and each call fills its time."""
    lanes = by_lane(timeline)
    makespan = findings.simulation.makespan
    slack = 1e-9 * makespan + 1e-9
    for pieces in lanes.values():
        for before, after in pairwise(pieces):
            assert before[1] <= after[0] + slack
        assert pieces[-1][1] <= makespan + slack
    assert sum(end - begin for begin, end, _ in lanes.get(0, [])) == pytest.approx(makespan)
    for frame in timeline.frames.values():
        for call in frame.calls:
            work = sum(callee.run.duration * times for callee, times in call.frames)
            assert work * call.scale == pytest.approx(call.end - call.begin)
        own = sum(piece.end - piece.begin for piece in frame.slices if piece.lane == frame.level)
        assert own == pytest.approx(frame.run.duration)


@given(programs())
def test_slices_of_a_lane_do_not_overlap(program: tuple[Module, TableModel]) -> None:
    findings = ScheduleFindings.of(program[0], ScheduleSettings())
    check(findings, Timeline.of(findings))


@pytest.mark.parametrize("bandwidth", [None, "h100_sxm"])
@pytest.mark.parametrize("loops", ["trips", "once", "cost"])
def test_loops_calls_and_branches_are_filled(loops: Any, bandwidth: str | None) -> None:
    shared = None if bandwidth is None else load_target(bandwidth)
    check(*find(nested(), loops=loops, shared_bandwidth=shared))


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.after_*")), ids=lambda path: path.name)
def test_real_modules_are_filled(path: Path) -> None:
    findings = ScheduleFindings.of(read_module(str(path)), ScheduleSettings())
    check(findings, Timeline.of(findings))


def test_every_trip_is_there() -> None:
    findings, timeline = find(nested(outer=3, inner=2))
    visits = runs_in(timeline)
    runs = {c.name: run.runs for c, run in findings.simulation.runs.items() if run.runs}
    assert dict(visits) == runs
    assert runs["inner_body"] == 6
    assert runs["inner_condition"] == 9  # in each trip once more than the body
    assert "no" not in runs  # the other branch takes longer
    assert (runs["helper"], runs["last"]) == (3, 1)
    for frame in timeline.frames.values():
        assert frame.weight == pytest.approx(runs[frame.run.computation.name])


def test_a_loop_of_no_trips_runs_its_condition() -> None:
    for findings, timeline in (find(nested(outer=0)), find(nested(outer=2, inner=0))):
        check(findings, timeline)
    _, timeline = find(nested(outer=0))
    visits = runs_in(timeline)
    assert (visits["outer_condition"], visits["outer_body"]) == (1, 0)


def test_operations_across_a_loop_have_a_lane_of_their_own() -> None:
    _, timeline = find(nested())
    assert timeline.lanes[:3] == ["main", "main 1", "main 2"]
    streams = timeline.lanes[3:]
    assert len(streams) == 2  # that of the entry, and below it those of the loops
    assert streams[1] == f"{streams[0]} 2"


def test_calls_that_are_nested_deep_share_a_lane() -> None:
    deep = MOST_LEVELS + 10
    computations = "".join(
        f"level{n} {{ x = f32[8] parameter(0) y = f32[8] negate(x) "
        f"ROOT z = f32[8] call(y), to_apply=level{n + 1} }}\n"
        for n in range(deep)
    )
    last = f"level{deep} {{ x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }}\n"
    # Callees first: computations have to be known when they are called.
    text = last + "".join(reversed(computations.splitlines(keepends=True)))
    entry = "ENTRY e { p = f32[8] parameter(0) ROOT c = f32[8] call(p), to_apply=level0 }"
    _, timeline = find(f"HloModule deep, is_scheduled=true\n{text}{entry}")
    assert len(timeline.lanes) == MOST_LEVELS
    assert sum(1 for _ in timeline.visits()) == deep + 2


# -- what is too much to be written out -----------------------------------------------------------


def test_of_too_many_trips_the_first_is_written_out_and_the_rest_is_one() -> None:
    _, timeline = find(nested(outer=1000, inner=50))
    visits = list(timeline.visits(most=100))
    rest = [visit for visit in visits if isinstance(visit, Rest)]
    names = {visit.call.instruction.name: visit.trips for visit in rest}
    assert names["outer"] == 999
    assert names["inner"] == 49
    (outer,) = (visit for visit in rest if visit.call.instruction.name == "outer")
    assert outer.end == pytest.approx(timeline.entry.calls[0].end)
    assert outer.begin == pytest.approx(timeline.entry.calls[0].begin + outer.call.period)
    assert _frames(visits) == set(timeline.frames.values())


def test_what_is_written_out_is_bounded() -> None:
    body = "a0 = f32[8] negate(x)" + "".join(
        f"\n a{n} = f32[8] negate(a{n - 1})" for n in range(1, 20)
    )
    body += "\n y = f32[8] copy(a19)"
    loops = [loop("l0", 10, body)]
    for n in range(1, 8):
        inner = run_loop(f"l{n - 1}", "x")
        loops.append(loop(f"l{n}", 10, f"{inner} y = f32[8] copy(l{n - 1}_out)"))
    entry = (
        f"ENTRY e {{ p = f32[8] parameter(0) {run_loop('l7', 'p')} ROOT r = f32[8] copy(l7_out) }}"
    )
    findings, timeline = find(f"HloModule m, is_scheduled=true\n{''.join(loops)}\n{entry}")
    assert findings.simulation.runs[findings.simulation.module.entry].duration > 10**8
    slices = sum(
        len(visit.frame.slices) for visit in timeline.visits(1000) if isinstance(visit, Visit)
    )
    own = sum(len(frame.slices) for frame in timeline.frames.values())
    assert slices <= 1000 + own
    assert len(timeline.memory(1000)) <= 3000


def _frames(visits: list[Visit | Rest]) -> set[Frame]:
    return {visit.frame for visit in visits if isinstance(visit, Visit)}


# -- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [10, 100_000])
def test_memory_changes_in_the_order_of_time_up_to_the_peak(most: int) -> None:
    findings, timeline = find(nested())
    memory = timeline.memory(most)
    times = [time for time, _ in memory]
    assert times == sorted(set(times))
    assert max(size for _, size in memory) == findings.memory.peak


def test_memory_is_alike_in_each_trip() -> None:
    findings, timeline = find(nested(outer=3))
    (call,) = timeline.entry.calls[:1]
    before = [(time, size) for time, size in timeline.memory() if time < call.begin + call.period]
    first = {round(time - call.begin, 6): size for time, size in before if time >= call.begin}
    second = {
        round(time - call.begin - call.period, 6): size
        for time, size in timeline.memory()
        if call.begin + call.period <= time < call.begin + 2 * call.period
    }
    assert max(first.values()) == max(second.values()) == findings.memory.peak
    assert first.items() & second.items()


# -- pages and traces -----------------------------------------------------------------------------


@pytest.mark.parametrize("loops", ["trips", "once", "cost"])
def test_groups_and_waiting_add_up_to_the_makespan(loops: Any) -> None:
    findings, timeline = find(nested(), loops=loops)
    data = packed(findings, timeline)
    assert data["groupings"]
    for grouping in data["groupings"]:
        assert sum(grouping["sums"]) + data["waiting"] == pytest.approx(data["makespan"])
        assert len(grouping["labels"]) == len(grouping["sums"])
    if loops == "trips":
        assert data["waiting"] == pytest.approx(findings.simulation.exposed)


def test_frames_of_the_page_hold_every_slice_once() -> None:
    findings, timeline = find(nested())
    data = json.loads(json.dumps(packed(findings, timeline)))
    slices = data["slices"]
    bounds = [0.0]
    for step in slices["steps"]:
        bounds.append(bounds[-1] + step)
    begins, ends = bounds[1::2], bounds[2::2]
    at = 0
    frames = list(timeline.frames.values())
    for packed_frame, frame in zip(data["frames"], frames, strict=True):
        assert packed_frame["name"] == frame.run.computation.name
        drawn = []
        for lane, first, last in packed_frame["lanes"]:
            assert (first, last > first) == (at, True)
            at = last
            drawn += [(lane, begins[i], ends[i]) for i in range(first, last)]
        expected = [(p.lane, p.begin, p.end) for p in frame.slices]
        assert drawn == [pytest.approx(each, abs=1e-3) for each in expected]
        for call, own in zip(packed_frame["calls"], frame.calls, strict=True):
            assert slices["kind"][call["slice"]] == "2"
            assert call["trips"] == own.trips
            callees = [(frames[number], times) for number, times in call["frames"]]
            assert callees == own.frames
    assert at == len(slices["kind"]) == len(slices["operation"])
    started = column_texts(data["operations"]["start"])
    assert started == [hiding.operation.start.name for _, hiding in findings.hidings]


def test_the_trace_is_as_the_trace_event_format_wants_it() -> None:
    """Chrome's Trace Event Format: complete, counter, flow and metadata events."""
    findings, timeline = find(nested())
    trace = json.loads(json.dumps(schedule_trace(findings, timeline)))
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C", "s", "f"}
    for event in events:
        assert {"name", "ph", "ts", "pid", "tid"} <= event.keys()
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert list(threads.values()) == timeline.lanes
    assert {e["tid"] for e in events if e["ph"] == "X"} == set(threads)
    starts, ends = ([e["id"] for e in events if e["ph"] == kind] for kind in "sf")
    assert len(set(starts)) == len(starts) >= 6  # each run of an operation has an arrow of its own
    assert sorted(starts) == sorted(ends)
    for event in events:
        if event["ph"] in "sf":  # an arrow is bound to the slice around it
            assert any(
                e["ph"] == "X"
                and e["tid"] == event["tid"]
                and e["ts"] <= event["ts"] < e["ts"] + e["dur"]
                for e in events
            )


def test_the_trace_fills_loops_that_are_too_long() -> None:
    findings, timeline = find(nested(outer=100_000, inner=100))
    events = schedule_trace(findings, timeline)["traceEvents"]
    assert len(events) < 100_000
    (rest,) = (e for e in events if e["name"] == "99,999 more trips of %outer" and e["tid"] == 1)
    loop_event = next(e for e in events if e["name"] == "outer")
    assert rest["ts"] + rest["dur"] == pytest.approx(loop_event["ts"] + loop_event["dur"])
    assert loop_event["ts"] < rest["ts"] < loop_event["ts"] + loop_event["dur"] / 1000
