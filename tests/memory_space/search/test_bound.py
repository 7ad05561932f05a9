"""The least time that any assignment can take, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory_space.chains import RATES
from tests.memory_space.search.test_search import BY_COST, options_of

from hloopt.passes.memory_space.search.bound import least_seconds
from hloopt.text import parse_module

ONLY_MEMORY: dict[str, Any] = {
    **RATES,
    "flops_per_second": 0,
    "alternate_mem_read_bandwidth_bytes_per_second": 0,
    "alternate_mem_write_bandwidth_bytes_per_second": 0,
}
"""1 us for each byte of default memory; alternate memory takes no time."""


def least(text: str, **given: Any) -> float:
    """In microseconds."""
    options = options_of({**BY_COST, "cost_model": ONLY_MEMORY, **given})
    return 1e6 * least_seconds(parse_module(text), options)


def entry(lines: str, shape: str = "f32[8]") -> str:
    return (
        f"HloModule m, is_scheduled=true\n\nENTRY %e {{\n  %p0 = {shape} parameter(0)\n"
        f"  %p1 = {shape} parameter(1)\n  {lines}\n}}\n"
    )


def test_parameters_that_are_read_and_results_are_moved_once() -> None:
    text = entry("%a = f32[8] negate(%p0)\n  %b = f32[8] add(%a, %p0)\n  ROOT %r = f32[8] abs(%b)")
    assert least(text) == pytest.approx(32 + 32)


def test_a_slice_moves_what_it_reads() -> None:
    text = entry("ROOT %r = f32[2] slice(%p0), slice={[0:2]}")
    assert least(text) == pytest.approx(8 + 8)


def test_what_does_not_fit_is_moved_each_time() -> None:
    text = entry("%a = f32[8] negate(%p0)\n  %b = f32[8] add(%a, %p0)\n  ROOT %r = f32[8] abs(%b)")
    assert least(text, max_size_in_bytes=31) == pytest.approx(32 * (2 + 3 + 2))


def test_arithmetic_takes_its_time() -> None:
    text = entry("ROOT %r = f32[8] negate(%p0)")
    slow = {**ONLY_MEMORY, "flops_per_second": 8e3}
    assert least(text, cost_model=slow) == pytest.approx(1000)


def test_a_loop_keeps_no_more_than_fits() -> None:
    text = """HloModule m, is_scheduled=true

%body {
  %s = (s32[], f32[8], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %w = f32[8] get-tuple-element(%s), index=1
  %v = f32[8] get-tuple-element(%s), index=2
  %sum = f32[8] add(%w, %v)
  %side = f32[8] custom-call(%sum), custom_call_target="tell", custom_call_has_side_effect=true
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %t = (s32[], f32[8], f32[8]) tuple(%next, %w, %v)
}

%condition {
  %s = (s32[], f32[8], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(10)
  ROOT %c = pred[] compare(%i, %n), direction=LT
}

ENTRY %e {
  %p0 = f32[8] parameter(0)
  %p1 = f32[8] parameter(1)
  %zero = s32[] constant(0)
  %t = (s32[], f32[8], f32[8]) tuple(%zero, %p0, %p1)
  %loop = (s32[], f32[8], f32[8]) while(%t), condition=%condition, body=%body
  ROOT %r = f32[8] get-tuple-element(%loop), index=1
}
"""
    free = least(text, max_size_in_bytes=1 << 10)
    tight = least(text, max_size_in_bytes=40)
    assert tight - free == pytest.approx(10 * (64 - 40))
