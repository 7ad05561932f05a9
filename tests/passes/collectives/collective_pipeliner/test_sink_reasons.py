"""Conditions that keep collective-pipeliner from sinking a collective, with their remarks."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay
from tests.passes.collectives.collective_pipeliner.loop_of_buffers import (
    REDUCED,
    STORED,
    loop,
    reasons,
)

STORED_ROW = "stored = f32[4,8] dynamic-update-slice(x, row, i, zero)"


@pytest.mark.parametrize(
    ("body", "ends", "reason"),
    [
        # Stores
        (
            REDUCED + STORED + "three = s32[] constant(3)\nback = s32[] subtract(three, i)\n"
            "other = f32[4,8] dynamic-update-slice(y, ar, back, zero)",
            "stored, other",
            "%other does not store where %stored does",
        ),
        (
            "column = f32[4,1] dynamic-slice(z, zero, i), dynamic_slice_sizes={4,1}\n"
            "ar = f32[4,1] all-reduce(column), to_apply=sum\n"
            "stored = f32[4,8] dynamic-update-slice(x, ar, zero, i)",
            "stored, y",
            "%stored does not store in slices of dimension 0",
        ),
        (
            "half = f32[1,4] slice(part), slice={[0:1],[0:4]}\n"
            "ar = f32[1,4] all-reduce(half), to_apply=sum\n" + STORED,
            "stored, y",
            "%stored does not store one whole slice",
        ),
        (
            REDUCED + "apart = s32[] multiply(i, two)\n"
            "stored = f32[4,8] dynamic-update-slice(x, ar, apart, zero)",
            "stored, y",
            "%stored does not store in neighboring slices",
        ),
        # Formatting
        (
            REDUCED + "side = tuple(z)\n"
            'row = f32[1,8] custom-call(ar, side), custom_call_target="LayoutConstraint"\n'
            + STORED_ROW,
            "stored, y",
            "%side, which its value is formatted with, is not an array",
        ),
        (
            "eight = s32[] constant(8)\n"
            "sized = f32[1,<=8] set-dimension-size(part, eight), dimensions={1}\n"
            "ar = f32[1,<=8] all-reduce(sized), to_apply=sum\n"
            'row = f32[1,8] custom-call(ar), custom_call_target="LayoutConstraint"\n' + STORED_ROW,
            "stored, y",
            "%ar does not give an array of a known size",
        ),
        (
            REDUCED + "low = f32[] constant(0)\nhigh = f32[] constant(1)\n"
            "row = f32[1,8] clamp(low, ar, high)\n" + STORED_ROW,
            "stored, y",
            "%row takes the scalar %low for all its elements",
        ),
        (
            REDUCED + 'row = f32[1,8] custom-call(ar), custom_call_target="f"\n' + STORED_ROW,
            "stored, y",
            "%row is a custom-call, which cannot run for all trips at once",
        ),
        (
            REDUCED + "row = f32[1,8] bitcast(ar)\n" + STORED_ROW,
            "stored, y",
            "%row is a bitcast, which cannot run for all trips at once",
        ),
        (
            REDUCED + "one.item = f32[1,1] slice(part), slice={[0:1],[0:1]}\n"
            "item = f32[] reshape(one.item)\n"
            "flat = f32[8] reduce(ar, item), dimensions={0}, to_apply=sum\n"
            "row = f32[1,8] reshape(flat)\n" + STORED_ROW,
            "stored, y",
            "%flat starts from %item in each trip",
        ),
        (
            "place = s32[1] reshape(i)\nar = s32[1] all-reduce(place), to_apply=whole\n"
            "at = s32[] reshape(ar)\n"
            "row = f32[1,8] dynamic-slice(z, at, zero), dynamic_slice_sizes={1,8}\n" + STORED_ROW,
            "stored, y",
            "%row slices at another place in each trip",
        ),
        (
            "half = f32[1,2] slice(part), slice={[0:1],[0:2]}\n"
            "ar = f32[1,2] all-reduce(half), to_apply=sum\n"
            "row = f32[1,8] dynamic-update-slice(part, ar, zero, i)\n" + STORED_ROW,
            "stored, y",
            "%row does not store one whole slice",
        ),
        (
            "item = f32[1,1] slice(part), slice={[0:1],[0:1]}\n"
            "ar = f32[1,1] all-reduce(item), to_apply=sum\n"
            "row = f32[1,8] dynamic-update-slice(part, ar, zero, k)\n" + STORED_ROW,
            "stored, y",
            "index %k of %row is not known to be inside",
        ),
    ],
)
def test_what_is_not_sunk(body: str, ends: str, reason: str) -> None:
    assert reasons(loop(body, ends), pipelining_direction="forward-sink") == [reason]


def test_a_loop_that_does_not_store_all_slices_keeps_its_collective() -> None:
    text = loop(REDUCED + STORED, limit=3)
    found = reasons(text, pipelining_direction="forward-sink")
    assert found == ["%stored has 4 slices, its loop 3 trips"]


def test_an_index_that_cannot_hold_the_number_of_trips_keeps_its_collective() -> None:
    text = """HloModule m
    sum { l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT add = f32[] add(l, r) }
    body {
      p = (s8[], f32[128], f32[1]) parameter(0)
      i = s8[] get-tuple-element(p), index=0
      x = f32[128] get-tuple-element(p), index=1
      v = f32[1] get-tuple-element(p), index=2
      one = s8[] constant(1)
      j = s8[] add(i, one)
      ar = f32[1] all-reduce(v), to_apply=sum
      stored = f32[128] dynamic-update-slice(x, ar, i)
      ROOT next = tuple(j, stored, v)
    }
    condition {
      q = (s8[], f32[128], f32[1]) parameter(0)
      now = s8[] get-tuple-element(q), index=0
      n = s8[] constant(28)
      ROOT less = pred[] compare(now, n), direction=LT
    }
    ENTRY main {
      a = f32[128] parameter(0)
      b = f32[1] parameter(1)
      begin = s8[] constant(-100)
      init = tuple(begin, a, b)
      ROOT w = (s8[], f32[128], f32[1]) while(init), condition=condition, body=body
    }
    """
    found = reasons_to_stay("collective-pipeliner", text, pipelining_direction="forward-sink")
    assert found == ["not pipelined: %i, the index, cannot count all trips"]
