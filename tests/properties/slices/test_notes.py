"""Notes of XLA:GPU on where slices are in each trip of a loop stay true of what passes leave."""

from __future__ import annotations

import pytest
from tests.properties.slices.notes import annotate, false_notes

from hloopt.diagnostics import HloError
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.passes.rewriting.slice_places import has_notes
from hloopt.text import parse_module, print_module
from pass_sweep_lib.cases import Case, all_cases
from pass_sweep_lib.modules import prepared

ROWS = """HloModule rows, num_partitions=2

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }

condition {
  s = (s32[], f32[8,4], f32[8,4], f32[1,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(8)
  ROOT less = pred[] compare(i, limit), direction=LT
}

body {
  s = (s32[], f32[8,4], f32[8,4], f32[1,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  in = f32[8,4] get-tuple-element(s), index=1
  out = f32[8,4] get-tuple-element(s), index=2
  kept = f32[1,4] get-tuple-element(s), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  row = f32[1,4] dynamic-slice(in, i, zero), dynamic_slice_sizes={1,4}
  all = f32[1,4] all-reduce(row), channel_id=1, replica_groups={{0,1}},
    use_global_device_ids=true, to_apply=sum
  twice = f32[1,4] multiply(all, kept)
  updated = f32[8,4] dynamic-update-slice(out, twice, i, zero)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[8,4], f32[8,4], f32[1,4]) tuple(next, in, updated, kept)
}

ENTRY main {
  in = f32[8,4] parameter(0)
  out = f32[8,4] parameter(1)
  kept = f32[1,4] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[8,4], f32[8,4], f32[1,4]) tuple(zero, in, out, kept)
  w = (s32[], f32[8,4], f32[8,4], f32[1,4]) while(t), condition=condition, body=body
  ROOT r = f32[8,4] get-tuple-element(w), index=2
}
"""
EVERY_TRIP = ROWS.replace(
    "  kept = f32[1,4] get-tuple-element(s), index=3",
    """  carried = f32[1,4] get-tuple-element(s), index=3
  two = s32[] constant(2)
  kept = f32[1,4] dynamic-slice(in, two, two), dynamic_slice_sizes={1,4}""",
).replace("tuple(next, in, updated, kept)", "tuple(next, in, updated, carried)")
"""One of the slices is at the same place in all trips."""
OF_RESULTS = (
    ROWS.replace("all = f32[1,4] all-reduce(row)", "all = f32[2,4] all-reduce(pair)")
    .replace("  all =", "  pair = f32[2,4] concatenate(row, row), dimensions={0}\n  all =")
    .replace("multiply(all, kept)", "multiply(part, kept)")
    .replace(
        "  twice =",
        "  part = f32[1,4] dynamic-slice(all, one, zero), dynamic_slice_sizes={1,4}\n  twice =",
    )
)
"""A slice is of what a collective gives."""
SOME_TRIPS = ROWS.replace(
    "  row = f32[1,4] dynamic-slice(in, i, zero), dynamic_slice_sizes={1,4}",
    """  four = s32[] constant(4)
  early = pred[] compare(i, four), direction=LT
  both = (f32[8,4], s32[]) tuple(in, i)
  row = f32[1,4] conditional(early, both, both), true_computation=here, false_computation=before""",
).replace(
    "condition {",
    """here {
  p = (f32[8,4], s32[]) parameter(0)
  in = f32[8,4] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  zero = s32[] constant(0)
  ROOT r = f32[1,4] dynamic-slice(in, i, zero), dynamic_slice_sizes={1,4}
}

before {
  p = (f32[8,4], s32[]) parameter(0)
  in = f32[8,4] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  zero = s32[] constant(0)
  two = s32[] constant(2)
  k = s32[] subtract(i, two)
  ROOT r = f32[1,4] dynamic-slice(in, k, zero), dynamic_slice_sizes={1,4}
}

condition {""",
    1,
)
"""Slices are taken in branches: one would be before its array in the first trips."""
NESTED = """HloModule nested

few {
  s = (s32[], s32[], f32[8,4], f32[8,4]) parameter(0)
  j = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(INNER)
  ROOT less = pred[] compare(j, limit), direction=LT
}

inner {
  s = (s32[], s32[], f32[8,4], f32[8,4]) parameter(0)
  j = s32[] get-tuple-element(s), index=0
  i = s32[] get-tuple-element(s), index=1
  in = f32[8,4] get-tuple-element(s), index=2
  out = f32[8,4] get-tuple-element(s), index=3
  one = s32[] constant(1)
  zero = s32[] constant(0)
  row = f32[1,4] dynamic-slice(in, i, zero), dynamic_slice_sizes={1,4}
  minus = f32[1,4] negate(row)
  updated = f32[8,4] dynamic-update-slice(out, minus, j, zero)
  next = s32[] add(j, one)
  ROOT t = (s32[], s32[], f32[8,4], f32[8,4]) tuple(next, i, in, updated)
}

many {
  s = (s32[], f32[8,4], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(OUTER)
  ROOT less = pred[] compare(i, limit), direction=LT
}

outer {
  s = (s32[], f32[8,4], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  in = f32[8,4] get-tuple-element(s), index=1
  out = f32[8,4] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  t = (s32[], s32[], f32[8,4], f32[8,4]) tuple(zero, i, in, out)
  v = (s32[], s32[], f32[8,4], f32[8,4]) while(t), condition=few, body=inner
  made = f32[8,4] get-tuple-element(v), index=3
  next = s32[] add(i, one)
  ROOT u = (s32[], f32[8,4], f32[8,4]) tuple(next, in, made)
}

ENTRY main {
  in = f32[8,4] parameter(0)
  out = f32[8,4] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8,4], f32[8,4]) tuple(zero, in, out)
  w = (s32[], f32[8,4], f32[8,4]) while(t), condition=many, body=outer
  ROOT r = f32[8,4] get-tuple-element(w), index=2
}
"""


def nested(outer: int, inner: int) -> str:
    return NESTED.replace("INNER", str(inner)).replace("OUTER", str(outer))


TYPES = """HloModule types

condition {
  s = (s32[], f32[8,4], f32[8,4], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(6)
  ROOT less = pred[] compare(i, limit), direction=LT
}

body {
  s = (s32[], f32[8,4], f32[8,4], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  in = f32[8,4] get-tuple-element(s), index=1
  out = f32[8,4] get-tuple-element(s), index=2
  other = f32[8,4] get-tuple-element(s), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  minus = f32[8,4] negate(in)
  narrow = bf16[8,4] convert(minus)
  row = bf16[1,4] dynamic-slice(narrow, i, zero), dynamic_slice_sizes={1,4}
  wide = f32[1,4] convert(row)
  updated = f32[8,4] dynamic-update-slice(out, wide, i, zero)
  plus = f32[8,4] add(in, other)
  high = f32[1,4] dynamic-slice(plus, i, zero), dynamic_slice_sizes={1,4}
  low = bf16[1,4] convert(high)
  back = f32[1,4] convert(low)
  flat = f32[32] reshape(other)
  four = s32[] constant(4)
  at = s32[] multiply(i, four)
  part = f32[4] dynamic-slice(flat, at), dynamic_slice_sizes={4}
  line = f32[1,4] reshape(part)
  turned = f32[4,8] transpose(in), dimensions={1,0}
  column = f32[4,1] dynamic-slice(turned, zero, i), dynamic_slice_sizes={4,1}
  some = f32[1,4] reshape(column)
  sum = f32[1,4] add(back, line)
  total = f32[1,4] add(sum, some)
  last = f32[8,4] dynamic-update-slice(other, total, i, zero)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[8,4], f32[8,4], f32[8,4]) tuple(next, in, updated, last)
}

ENTRY main {
  in = f32[8,4] parameter(0)
  out = f32[8,4] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8,4], f32[8,4], f32[8,4]) tuple(zero, in, out, in)
  ROOT w = (s32[], f32[8,4], f32[8,4], f32[8,4]) while(t), condition=condition, body=body
}
"""
PROGRAMS = {
    "rows": ROWS,
    "every trip": EVERY_TRIP,
    "of results": OF_RESULTS,
    "some trips": SOME_TRIPS,
    "nested": nested(3, 4),
    "nested, one trip outside": nested(1, 4),
    "nested, one trip inside": nested(3, 1),
    "types": TYPES,
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize(
    "case", [c for c in all_cases() if "search" not in c.name], ids=lambda case: case.passes
)
def test_notes_are_true_after_passes(case: Case, text: str) -> None:
    module = parse_module(text)
    assert annotate(module)
    module = parse_module(prepared(print_module(module), case))
    try:
        if not PipelineRunner().run(case.pipeline, module).changed:
            return
    except HloError:
        return
    assert false_notes(module) == []


def test_slices_that_are_taken_for_all_trips_at_once_lose_their_notes() -> None:
    module = parse_module(OF_RESULTS)
    annotate(module)
    options = {"pipelining_direction": "forward-sink", "should_process": ["all-reduce"]}
    assert create_pass("collective-pipeliner", options).run(module, PassContext())
    found = list(module.instructions(Opcode.DYNAMIC_SLICE))
    of_stacks = [each for each in found if each.shape.rank == 3]
    assert of_stacks
    assert not has_notes(of_stacks)
    assert has_notes(found)


def test_slices_that_go_by_a_loop_further_out_keep_their_notes_where_one_is_unrolled() -> None:
    """They are where they were in all trips of the inner loop, at rows of the outer one."""
    module = parse_module(nested(3, 4))
    annotate(module)
    options = {"unroll_strategy": "double-buffer", "loops": ["v"]}
    assert create_pass("double-buffer-loop-unrolling", options).run(module, PassContext())
    rows = list(module.instructions(Opcode.DYNAMIC_SLICE))
    assert len(rows) == 2
    assert all(has_notes([row]) for row in rows)
    assert false_notes(module) == []
