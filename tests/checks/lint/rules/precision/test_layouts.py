"""Rules about layouts."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.checks.results import Verdict
from hloopt.memory.analysis import analyze_memory
from hloopt.text import parse_module

# -- HLL304 ---------------------------------------------------------------------------------------


def scheduled(*lines: str, computations: str = "") -> str:
    text = "\n  ".join(lines)
    return f"HloModule m, is_scheduled=true\n{computations}\nENTRY e {{\n  {text}\n}}\n"


QUANTIZED = scheduled("w = s4[4096]{0} parameter(0)", "ROOT r = f32[4096]{0} convert(w)")


def peak_of(text: str) -> int:
    return analyze_memory(parse_module(text)).peak


def test_an_unpacked_argument_and_the_bytes_that_it_wastes() -> None:
    (found,) = violations("HLL304", QUANTIZED, size=2048)
    assert found.message == (
        "argument %w takes a byte for each element of s4 (2.0 KiB moved, 2.0 KiB at the peak)"
    )
    packed = QUANTIZED.replace("s4[4096]{0}", "s4[4096]{0:E(4)}")
    assert found.impact.memory == peak_of(QUANTIZED) - peak_of(packed)
    assert not violations("HLL304", packed, size=1)
    assert not violations("HLL304", QUANTIZED, size=2049)


@pytest.mark.parametrize(
    ("element", "wasted"),
    [
        *(("s4", 2048), ("u4", 2048), ("s2", 3072), ("u2", 3072), ("f4e2m1fn", 2048)),
        *(("pred", 0), ("s8", 0), ("f8e4m3fn", 0)),
    ],
)
def test_types_that_layouts_pack(element: str, wasted: int) -> None:
    text = QUANTIZED.replace("s4", element)
    assert sum(each.impact.moved for each in violations("HLL304", text, size=1)) == wasted


def test_what_defines_an_array_is_found_and_what_hands_it_on_is_not() -> None:
    text = scheduled(
        "p = f32[4096]{0} parameter(0)",
        "q = s4[4096]{0} convert(p)",
        "b = s4[64,64]{1,0} bitcast(q)",
        "t = (s4[64,64]{1,0}) tuple(b)",
        "g = s4[64,64]{1,0} get-tuple-element(t), index=0",
        "c = s4[64,64]{1,0} copy(g)",
        "ROOT r = (s4[64,64]{1,0}) tuple(c)",
    )
    assert found_names("HLL304", text, size=1) == ["q", "c"]
    assert not sum(each.impact.memory for each in violations("HLL304", text, size=1))


def test_arrays_within_fusions_and_loops() -> None:
    computations = """
f {
  a = f32[4096]{0} parameter(0)
  q = s4[4096]{0} convert(a)
  ROOT r = f32[4096]{0} convert(q)
}
body {
  s = (s32[], f32[4096]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[4096]{0} get-tuple-element(s), index=1
  k = s4[4096]{0} convert(x)
  y = f32[4096]{0} convert(k)
  ROOT t = (s32[], f32[4096]{0}) tuple(n, y)
}
condition {
  u = (s32[], f32[4096]{0}) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  l = s32[] constant(8)
  ROOT z = pred[] compare(j, l), direction=LT
}
"""
    text = scheduled(
        "p = f32[4096]{0} parameter(0)",
        "zero = s32[] constant(0)",
        "e0 = f32[4096]{0} fusion(p), kind=kLoop, calls=f",
        "start = (s32[], f32[4096]{0}) tuple(zero, e0)",
        "ROOT w = (s32[], f32[4096]{0}) while(start), condition=condition, body=body",
        computations=computations,
    )
    (found,) = violations("HLL304", text, size=1)
    assert found.message == ("%k takes a byte for each element of s4, 8 runs (16.0 KiB moved)")


def test_parameters_within_the_program_are_their_callers_values() -> None:
    computations = """
f {
  a = s4[4096]{0} parameter(0)
  ROOT r = f32[4096]{0} convert(a)
}
"""
    text = scheduled(
        "p = s4[4096]{0} parameter(0)",
        "ROOT c = f32[4096]{0} call(p), to_apply=f",
        computations=computations,
    )
    assert found_names("HLL304", text, size=1) == ["p"]


def test_before_layouts_are_assigned_there_is_no_verdict() -> None:
    found = check("HLL304", QUANTIZED.replace(", is_scheduled=true", ""))
    assert found.verdict is Verdict.NONE
    assert found.reason.startswith("the module is not scheduled")
