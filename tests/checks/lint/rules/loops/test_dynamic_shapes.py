"""Dynamic dimensions in loops."""

from __future__ import annotations

import pytest
from tests.checks.expecting import UNPARTITIONED
from tests.checks.lint.linting import check, found_names, violations
from tests.checks.lint.loops import in_loop

from hloopt.checks.results import Verdict

CODE = "HLL502"
SHAPES = ("s32[]", "f32[8]", "f32[<=8]")
CUT = "x = f32[<=8] set-dimension-size(v2, v1), dimensions={0}"
PADDED = '(f32[8], s32[]) custom-call(v3), custom_call_target="PadToStatic"'


def dynamic(work: str, results: str = "v1, v2, v3", **given: str) -> str:
    return in_loop(work, results, *SHAPES, **given)


@pytest.mark.parametrize(
    "work",
    [
        CUT,
        "x = s32[] get-dimension-size(v3), dimensions={0}",
        "x = f32[<=8] negate(v3)",
        "x = f32[8] set-dimension-size(v3, i), dimensions={0}",
        "x = f32[<=4,2] dynamic-reshape(v3, v1, one)",
        f"x = {PADDED}",
        'x = f32[8] custom-call(v2), custom_call_target="PadToStatic"',
        'x = f32[8] custom-call(v2, v1), custom_call_target="SliceToDynamic"',
        "x = (f32[<=8], f32[8]) fusion(v3, v2), kind=kLoop, calls=both",
    ],
)
def test_work_on_a_dynamic_dimension_is_found(work: str) -> None:
    both = """both {
  g0 = f32[<=8] parameter(0)
  g1 = f32[8] parameter(1)
  g2 = f32[<=8] negate(g0)
  g3 = f32[8] negate(g1)
  ROOT g4 = (f32[<=8], f32[8]) tuple(g2, g3)
}"""
    text = dynamic(work, computations=both if "fusion" in work else "")
    (found,) = violations(CODE, text)
    assert found.location.instruction == "x"
    assert found.message.startswith(
        "1 instruction works on dynamic dimensions in the body of a loop, first %x, 10 runs"
    )


def test_a_computation_is_found_once_with_all_of_its_instructions() -> None:
    work = f"{CUT} y = f32[<=8] negate(x) z = f32[<=8] add(x, y)"
    (found,) = violations(CODE, dynamic(work, "v1, v2, z"))
    assert found.message.startswith("3 instructions work on dynamic dimensions")
    assert [each.instruction for each in found.related] == ["y", "z"]
    static, dynamic_array, size = 32, 36, 4  # a dynamic array has its size with it
    assert found.impact.moved == 10 * (static + size + 6 * dynamic_array)


@pytest.mark.parametrize(
    "work",
    [
        "x = f32[8] negate(v2)",
        "x = (f32[<=8], s32[]) tuple(v3, v1) y = f32[<=8] get-tuple-element(x), index=0",
        'x = f32[8] custom-call(v2), custom_call_target="f"',
    ],
    ids=["static", "handed on", "another call"],
)
def test_what_does_no_work_on_one_is_not_found(work: str) -> None:
    assert found_names(CODE, dynamic(work)) == []


def test_what_a_body_calls_is_in_the_loop() -> None:
    called = "called { c = f32[<=8] parameter(0) ROOT x = f32[<=8] negate(c) }"
    work = "y = f32[<=8] call(v3), to_apply=called"
    assert found_names(CODE, dynamic(work, "v1, v2, y", computations=called)) == ["x"]


def test_what_runs_once_is_not_found() -> None:
    assert found_names(CODE, dynamic(CUT, limit="constant(2)")) == ["x"]
    assert found_names(CODE, dynamic(CUT, limit="constant(1)")) == []
    assert found_names(CODE, dynamic(CUT, limit="constant(0)")) == []
    text = "HloModule m ENTRY e { p = f32[<=8] parameter(0) ROOT x = f32[<=8] negate(p) }"
    assert found_names(CODE, text) == []


def test_what_is_called_twice_is_not_in_a_loop() -> None:
    text = """HloModule m
called { c = f32[<=8] parameter(0) ROOT x = f32[<=8] negate(c) }
ENTRY e {
  p = f32[<=8] parameter(0)
  y = f32[<=8] call(p), to_apply=called
  ROOT z = f32[<=8] call(y), to_apply=called
}
"""
    assert found_names(CODE, text) == []


def test_a_loop_of_unknown_trips_is_found() -> None:
    (found,) = violations(CODE, dynamic(CUT, limit="get-tuple-element(q), index=1"))
    assert "first %x, in a loop whose trip count is not known" in found.message


def test_bytes_are_those_of_one_device() -> None:
    assert check(CODE, UNPARTITIONED).verdict is Verdict.NONE
