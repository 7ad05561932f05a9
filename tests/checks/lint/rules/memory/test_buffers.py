"""Rules about buffers that need not be there."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.checks.results import Verdict
from hloopt.memory.analysis import analyze_memory
from hloopt.text import parse_module


def peak_of(text: str) -> int:
    return analyze_memory(parse_module(text)).peak


# -- HLL402 ---------------------------------------------------------------------------------------

CONSTANT = """HloModule m, is_scheduled=true
ENTRY e {{
  p = f32[4] parameter(0)
  c = f32[4] {value}
  ROOT r = f32[4] add(p, c)
}}
"""


def test_a_constant_and_the_memory_it_takes() -> None:
    text = CONSTANT.format(value="constant({1, 2, 4, 8})")
    (found,) = violations("HLL402", text, size=16)
    assert found.message == "constant %c is a literal of 16 B (16 B at the peak)"
    without = text.replace("  c = f32[4] constant({1, 2, 4, 8})\n", "").replace("(p, c)", "(p, p)")
    assert peak_of(text) - peak_of(without) == found.impact.memory
    assert not violations("HLL402", text, size=17)
    assert not violations("HLL402", text)


@pytest.mark.parametrize(
    ("shape", "literal", "pattern"),
    [
        ("f32[4]", "{2, 2, 2, 2}", "; its values are those of a broadcast"),
        ("s32[4]", "{0, 1, 2, 3}", "; its values are those of an iota"),
        ("s32[4]", "{1, 2, 3, 4}", ""),
        ("s32[2,2]", "{{0, 1}, {0, 1}}", "; its values are those of an iota"),
        ("s32[2,2]", "{{0, 0}, {1, 1}}", "; its values are those of an iota"),
        ("s32[2,2]", "{{0, 1}, {1, 0}}", ""),
        ("f32[4]", "{...}", ""),
    ],
)
def test_values_with_a_pattern_are_named(shape: str, literal: str, pattern: str) -> None:
    text = f"HloModule m\nENTRY e {{\n  ROOT c = {shape} constant({literal})\n}}\n"
    (found,) = violations("HLL402", text, size=1)
    assert found.message == f"constant %c is a literal of 16 B{pattern} (16 B at the peak)"


TWO = """HloModule m
ENTRY e {{
  a = f32[2] constant({a})
  b = {shape} constant({b})
  ROOT t = (f32[2], {shape}) tuple(a, b)
}}
"""


def test_equal_literals_are_one_finding() -> None:
    (found,) = violations("HLL402", TWO.format(a="{1, 3}", shape="f32[2]", b="{1, 3}"), size=1)
    assert found.message.startswith(
        "constant %a is a literal of 8 B and stands in the module 2 times"
    )
    assert found.impact.memory == 16
    assert [each.instruction for each in found.related] == ["b"]


@pytest.mark.parametrize(
    ("shape", "a", "b"),
    [
        ("f32[2]", "{1, 3}", "{1, 4}"),
        ("s32[2]", "{1, 3}", "{1, 3}"),
        ("f32[2]", "{...}", "{...}"),  # nobody knows
    ],
)
def test_other_literals_are_findings_of_their_own(shape: str, a: str, b: str) -> None:
    assert found_names("HLL402", TWO.format(a=a, shape=shape, b=b), size=1) == ["a", "b"]


def test_a_constant_in_a_fusion_takes_no_memory() -> None:
    text = """HloModule m
f {
  p = f32[4] parameter(0)
  c = f32[4] constant({1, 2, 4, 8})
  ROOT r = f32[4] add(p, c)
}
ENTRY e {
  p = f32[4] parameter(0)
  ROOT r = f32[4] fusion(p), kind=kLoop, calls=f
}
"""
    (found,) = violations("HLL402", text, size=16)
    assert found.message == "constant %c is a literal of 16 B"


def test_nothing_is_claimed_of_memory_before_partitioning() -> None:
    text = CONSTANT.format(value="constant({1, 2, 4, 8}), sharding={devices=[2]0,1}")
    text = text.replace(", is_scheduled=true", ", num_partitions=2")
    (found,) = violations("HLL402", text, size=16)
    assert found.impact.memory == 0


def test_tuples_count_by_their_arrays() -> None:
    text = "HloModule m\nENTRY e {\n  ROOT c = (f32[2], f32[2]) constant(({1, 2}, {1, 2}))\n}\n"
    (found,) = violations("HLL402", text, size=16)
    assert found.message == "constant %c is a literal of 16 B (16 B at the peak)"


# -- HLL403 ---------------------------------------------------------------------------------------

READ = """HloModule m, is_scheduled=true
made {{
  {made}
}}
read {{
  a = f32[4096] parameter(0)
  b = f32[4096] parameter(1)
  ROOT c = pred[4096] compare(a, b), direction=LT
}}
ENTRY e {{
  a = f32[4096] parameter(0)
  s = f32[] parameter(1)
  few = f32[1024] parameter(2)
  v = f32[4096] {value}
  {root}
}}
"""
FUSED = "fusion(s), kind=kLoop, calls=made"
MADE = "s = f32[] parameter(0)\n  ROOT n = f32[4096] broadcast(s), dimensions={}"
ROOT = "ROOT r = pred[4096] fusion(a, v), kind=kLoop, calls=read"


def broadcast(value: str = FUSED, made: str = MADE, root: str = ROOT) -> str:
    return READ.format(value=value, made=made, root=root)


@pytest.mark.parametrize(
    "text",
    [
        broadcast(),
        broadcast("broadcast(s), dimensions={}"),
        broadcast("iota(), iota_dimension=0"),
        broadcast(
            made="s = f32[] parameter(0)\n  t = bf16[] convert(s)\n"
            "  n = bf16[4,1024] broadcast(t), dimensions={}\n"
            "  m = bf16[4096] bitcast(n)\n  ROOT c = f32[4096] convert(m)"
        ),
        broadcast(root="ROOT r = pred[4096] compare(a, v), direction=LT"),
        broadcast(root=ROOT.replace("kLoop", "kInput")),
        broadcast(
            root=ROOT.replace("kLoop", "kCustom")
            + ', backend_config={"fusion_backend_config":{"kind":"__triton_gemm"}}'
        ),
    ],
)
def test_broadcasts_at_the_peak_that_readers_could_compute(text: str) -> None:
    assert found_names("HLL403", text, size=16384) == ["v"]
    assert not found_names("HLL403", text, size=16385)


def test_the_claim_is_what_the_peak_falls_by() -> None:
    text = broadcast()
    (found,) = violations("HLL403", text, size=1)
    assert found.message == (
        "%v holds a broadcast in memory at the peak, although its readers could compute the "
        "elements (16.0 KiB at the peak)"
    )
    fused = text.replace("  v = f32[4096] fusion(s), kind=kLoop, calls=made\n", "").replace(
        "fusion(a, v)", "fusion(a, a)"
    )
    assert peak_of(text) - peak_of(fused) == found.impact.memory


@pytest.mark.parametrize(
    "text",
    [
        # readers that need it in memory
        broadcast(root='ROOT r = f32[4096] custom-call(a, v), custom_call_target="f"'),
        broadcast(root=ROOT.replace("kLoop", "kCustom")),
        broadcast(
            root="ROOT r = f32[] dot(a, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}"
        ),
        # a result
        broadcast(root="q = f32[4096] add(a, v)\n  ROOT t = (f32[4096], f32[4096]) tuple(q, v)"),
        # memory that others write
        broadcast(
            root="z = s32[] constant(0)\n  ROOT u = f32[4096] dynamic-update-slice(v, few, z)"
        ),
        broadcast(
            root="z = s32[] constant(0)\n  u = f32[4096] dynamic-update-slice(v, few, z)\n"
            "  ROOT r = f32[4096] add(u, a)"
        ),
        # a broadcast of much, and other work
        broadcast(
            "fusion(few), kind=kLoop, calls=made",
            "s = f32[1024] parameter(0)\n  n = f32[4,1024] broadcast(s), dimensions={1}\n"
            "  ROOT m = f32[4096] bitcast(n)",
        ),
        broadcast(
            made="s = f32[] parameter(0)\n  t = f32[] negate(s)\n"
            "  ROOT n = f32[4096] broadcast(t), dimensions={}"
        ),
        broadcast(
            made="s = f32[] parameter(0)\n  n = f32[4096] broadcast(s), dimensions={}\n"
            "  ROOT m = f32[4096] negate(n)"
        ),
    ],
)
def test_other_buffers(text: str) -> None:
    assert not found_names("HLL403", text, size=1)


def test_memory_that_the_result_needs_without_the_broadcast_is_not_claimed() -> None:
    root = 'q = f32[4096] add(a, v)\n  ROOT c = f32[8] custom-call(q), custom_call_target="f"'
    assert not found_names("HLL403", broadcast(root=root), size=1)


def test_another_moment_that_needs_nearly_as_much_limits_the_claim() -> None:
    root = (
        "r = pred[4096] fusion(a, v), kind=kLoop, calls=read\n"
        "  big = f32[4000] slice(a), slice={[0:4000]}\n"
        '  ROOT c = pred[4096] custom-call(r, big), custom_call_target="f"'
    )
    text = broadcast(root=root)
    (found,) = violations("HLL403", text, size=1)
    without = text.replace("  v = f32[4096] fusion(s), kind=kLoop, calls=made\n", "").replace(
        "fusion(a, v)", "fusion(a, a)"
    )
    assert found.impact.memory == peak_of(text) - peak_of(without) < 16384


def test_what_is_not_alive_at_the_peak_is_not_found() -> None:
    later = (
        "r = f32[4096] negate(v)\n"
        "  big = f32[4096,4] broadcast(r), dimensions={0}\n"
        '  ROOT c = f32[4096] custom-call(big), custom_call_target="f"'
    )
    assert not found_names("HLL403", broadcast(root=later), size=1)


def test_a_broadcast_that_a_loop_carries() -> None:
    text = """HloModule m, is_scheduled=true
body {
  s = (s32[], f32[4096], f32[4096]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[4096] get-tuple-element(s), index=1
  b = f32[4096] get-tuple-element(s), index=2
  y = f32[4096] add(x, b)
  ROOT r = (s32[], f32[4096], f32[4096]) tuple(n, y, b)
}
condition {
  s = (s32[], f32[4096], f32[4096]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(8)
  ROOT c = pred[] compare(i, k), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  a = f32[4096] parameter(0)
  s = f32[] parameter(1)
  x = f32[4096] negate(a)
  i = s32[] copy(zero)
  ones = f32[4096] broadcast(s), dimensions={}
  start = (s32[], f32[4096], f32[4096]) tuple(i, x, ones)
  w = (s32[], f32[4096], f32[4096]) while(start), condition=condition, body=body
  ROOT y = f32[4096] get-tuple-element(w), index=1
}
"""
    assert found_names("HLL403", text, size=1) == ["ones"]
    changed = text.replace("tuple(n, y, b)", "tuple(n, b, y)")
    assert not check("HLL403", changed, size=1).violations


def test_without_a_schedule_there_is_no_verdict() -> None:
    text = broadcast(root="q = f32[4096] negate(a)\n  ROOT r = f32[4096] add(q, v)")
    found = check("HLL403", text.replace(", is_scheduled=true", ""))
    assert found.verdict is Verdict.NONE
