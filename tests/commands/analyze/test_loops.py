"""`hloopt analyze loops`: formats, nesting, annotations that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

TEXT = """HloModule m
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
called { x = f32[4] parameter(0) ROOT g = f32[4] all-reduce(x), to_apply=sum }
inner_body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[4] all-reduce(x), to_apply=sum
  ROOT t = (s32[], f32[4]) tuple(next, y)
}
inner_condition {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  two = s32[] constant(2)
  next = s32[] add(i, two)
  zero = s32[] constant(0)
  y = f32[4] call(x), to_apply=called
  state = (s32[], f32[4]) tuple(zero, y)
  inner = (s32[], f32[4]) while(state), condition=inner_condition, body=inner_body,
    metadata={op_name="jit(f)/inner"}
  z = f32[4] get-tuple-element(inner), index=1
  ROOT t = (s32[], f32[4]) tuple(next, z)
}
condition {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[4] parameter(0)
  first = s32[] FIRST
  state = (s32[], f32[4]) tuple(first, x)
  ROOT outer = (s32[], f32[4]) while(state), condition=condition, body=body,
    backend_config={"known_trip_count":{"n":"STATED"}}
}
"""


def write(tmp_path: Path, *, first: str = "constant(3)", stated: int = 4) -> str:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT.replace("FIRST", first).replace("STATED", str(stated)))
    return str(path)


def test_loops_are_listed_as_they_are_nested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "loops", write(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[2].split()) == "%outer 4 computed #0 = 3, +2, < 10 20 B 11 1"
    assert " ".join(lines[3].split()) == "%inner 5 computed #0 = 0, +1, < 5 20 B 7 1"
    assert lines[3].startswith("  %inner")
    assert lines[4].strip() == "jit(f)/inner"
    assert all(len(line) <= 80 for line in lines)


def test_a_wrong_annotation_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "loops", write(tmp_path, stated=7)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "WRONG ANNOTATION %outer: known_trip_count states 7 trips" in out
    assert "body and condition make 4" in out


def test_unknown_trips_have_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, first="parameter(1)")
    assert main(["analyze", "loops", path, "--format", "json"]) == 0
    [file] = json.loads(capsys.readouterr().out)
    outer, inner = file["loops"]
    assert (outer["trips"], outer["source"], outer["stated"]) == (4, "stated", 4)
    assert outer["reason"] == "the initial value of its counter, element 0, is not constant"
    assert outer["counter"] == {
        **{"element": 0, "init": None, "step": 2, "direction": "LT", "limit": 10}
    }
    assert (inner["name"], inner["depth"], inner["trips"]) == ("inner", 1, 5)
    assert (outer["collectives"], inner["collectives"]) == ({"all-reduce": 1}, {"all-reduce": 1})
    assert main(["analyze", "loops", path]) == 0
    assert "* %outer: trips as stated: the initial value" in capsys.readouterr().out


def test_a_module_without_loops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.hlo"
    path.write_text("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }")
    assert main(["analyze", "loops", str(path)]) == 0
    assert capsys.readouterr().out == "no while loops\n"
