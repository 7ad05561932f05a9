"""The report on while loops: findings, terminal page, JSON."""

from __future__ import annotations

import json

from tests.analysis.loops.modules import NESTED
from tests.reports.structure.pages import page

from hloopt.reports.structure.loops import Counter, analyze_loops
from hloopt.reports.structure.loops_terminal import render_loops
from hloopt.reports.structure.record import loops_to_json
from hloopt.text import parse_module

UNKNOWN = NESTED.replace("first = s32[] constant(3)", "first = s32[] parameter(1)")
WRONG = NESTED.replace('{"n":"4"}', '{"n":"7"}')


def test_loops_are_listed_as_they_are_nested() -> None:
    lines = page(render_loops, analyze_loops(parse_module(NESTED))).splitlines()
    assert " ".join(lines[2].split()) == "%outer 4 computed #0 = 3, +2, < 10 20 B 11 1"
    assert " ".join(lines[3].split()) == "%inner 5 computed #0 = 0, +1, < 5 20 B 7 1"
    assert lines[3].startswith("  %inner")
    assert lines[4].strip() == "jit(f)/inner"
    assert all(len(line) <= 80 for line in lines)


def test_unknown_trips_have_a_reason() -> None:
    outer, inner = loops = analyze_loops(parse_module(UNKNOWN))
    assert (outer.trips, outer.source, outer.stated, outer.disagrees) == (4, "stated", 4, False)
    assert outer.reason == "the initial value of its counter, element 0, is not constant"
    assert outer.counter == Counter(element=0, init=None, step=2, direction="LT", limit=10)
    assert (inner.name, inner.depth, inner.trips, inner.reason) == ("inner", 1, 5, "")
    assert (outer.collectives, inner.collectives) == ({"all-reduce": 1}, {"all-reduce": 1})
    assert "* %outer: trips as stated: the initial value" in page(render_loops, loops)


def test_a_wrong_annotation_is_found() -> None:
    loops = analyze_loops(parse_module(WRONG))
    assert [loop.disagrees for loop in loops] == [True, False]
    text = " ".join(page(render_loops, loops).split())
    assert "WRONG ANNOTATION %outer: known_trip_count states 7 trips" in text
    assert "body and condition make 4" in text


def test_data_has_all_findings() -> None:
    outer, _ = data = loops_to_json(analyze_loops(parse_module(NESTED)))
    assert json.loads(json.dumps(data)) == data
    assert (outer["name"], outer["computation"], outer["body"]) == ("outer", "e", "body")
    assert outer["counter"] == {
        **{"element": 0, "init": 3, "step": 2, "direction": "LT", "limit": 10}
    }
    assert (outer["trips"], outer["state_bytes"], outer["instructions"]) == (4, 20, 11)


def test_a_module_without_loops() -> None:
    loops = analyze_loops(parse_module("HloModule m ENTRY e { ROOT p = f32[] parameter(0) }"))
    assert page(render_loops, loops) == "no while loops\n"
