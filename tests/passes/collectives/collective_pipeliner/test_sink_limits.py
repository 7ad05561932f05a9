"""Limits of what can run once for all trips, from both sides."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import run_checked
from tests.passes.collectives.collective_pipeliner.loops import loop
from tests.passes.collectives.collective_pipeliner.test_reasons import reasons

from hloopt.ir import Opcode

SINK: dict[str, Any] = {"pipelining_direction": "forward-sink"}
AR = "  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum\n"
STORE = "\n  stored = f32[4,8] dynamic-update-slice(x, last, i, zero)"


def check(text: str, reason: str | None) -> None:
    """Sink the all-reduce of a loop; it has to stay for a reason if there is one."""
    if reason is not None:
        assert reasons(text, **SINK) == [reason]
        return
    module = run_checked("collective-pipeliner", text, **SINK)
    (reduced,) = module.instructions(Opcode.ALL_REDUCE)
    assert reduced.parent.is_entry


@pytest.mark.parametrize(
    ("index", "size", "is_inside"),
    [
        ("add(i, zero)", 4, True),
        ("add(i, one)", 5, True),
        ("add(i, one)", 4, False),
        ("subtract(i, one)", 4, False),
        ("subtract(three, i)", 4, True),
        ("subtract(four, i)", 5, True),
        ("subtract(four, i)", 4, False),
        ("subtract(two, i)", 4, False),
        ("multiply(i, i)", 99, False),
    ],
)
def test_an_inner_store_stays_inside(index: str, size: int, is_inside: bool) -> None:
    body = f"""{AR}  one = s32[] constant(1)
  two = s32[] constant(2)
  three = s32[] constant(3)
  four = s32[] constant(4)
  fill = f32[] constant(0)
  none = f32[1,8,{size}] broadcast(fill), dimensions={{}}
  deep = f32[1,8,1] reshape(ar)
  at = s32[] {index}
  set = f32[1,8,{size}] dynamic-update-slice(none, deep, zero, zero, at)
  last = f32[1,8] reduce(set, fill), dimensions={{2}}, to_apply=sum{STORE}"""
    check(loop(body), None if is_inside else "index %at of %set is not known to be inside")


@pytest.mark.parametrize(
    ("update", "at", "reason"),
    [
        ("f32[1,8,1] reshape(ar)", "zero, zero, i", None),
        ("f32[1,8,2] broadcast(ar), dimensions={0,1}", "zero, zero, i",
         "%set does not store one whole slice"),
        ("f32[1,4,1] reshape(half)", "zero, zero, i", "%set does not store one whole slice"),
        ("f32[1,8,1] reshape(ar)", "i, zero, zero",
         "%set, between it and its store, is a dynamic-update-slice, which cannot be moved along"),
        ("f32[1,8,1] reshape(ar)", "zero, i, i",
         "%set, between it and its store, is a dynamic-update-slice, which cannot be moved along"),
    ],
)  # fmt: skip
def test_an_inner_store_sets_one_whole_slice(update: str, at: str, reason: str | None) -> None:
    body = f"""{AR}  fill = f32[] constant(0)
  none = f32[1,8,4] broadcast(fill), dimensions={{}}
  half = f32[1,4] slice(ar), slice={{[0:1], [4:8]}}
  row = {update}
  set = f32[1,8,4] dynamic-update-slice(none, row, {at})
  last = f32[1,8] reduce(set, fill), dimensions={{2}}, to_apply=sum{STORE}"""
    if "half" not in update:
        body = body.replace("  half = f32[1,4] slice(ar), slice={[0:1], [4:8]}\n", "")
    check(loop(body), reason)


@pytest.mark.parametrize(
    ("formatting", "reason"),
    [
        # What starts a reduction or fills a padding is one scalar for all trips.
        ("k = f32[] constant(2)\n  last = f32[1,8] reduce(wide, k), dimensions={1}, to_apply=sum",
         None),
        ("k = f32[] call(), to_apply=number\n"
         "  last = f32[1,8] reduce(wide, k), dimensions={1}, to_apply=sum", None),
        ("j.f = f32[] convert(i)\n"
         "  last = f32[1,8] reduce(wide, j.f), dimensions={1}, to_apply=sum",
         "%last starts from %j.f in each trip"),
        ("k = f32[] custom-call(), custom_call_target=\"t\", custom_call_has_side_effect=true\n"
         "  last = f32[1,8] reduce(wide, k), dimensions={1}, to_apply=sum",
         "%last starts from %k in each trip"),
        ("k = f32[] constant(2)\n  pair = (f32[1,8], f32[1,8]) reduce(wide, wide, k, k), "
         "dimensions={1}, to_apply=both\n  last = f32[1,8] get-tuple-element(pair), index=0",
         "%last, between it and its store, is a get-tuple-element, which cannot be moved along"),
        # Slices begin at one place in all trips.
        ("k = s32[] constant(1)\n"
         "  one.row = f32[1,1,8] dynamic-slice(wide, zero, k, zero), dynamic_slice_sizes={1,1,8}\n"
         "  last = f32[1,8] reshape(one.row)", None),
        ("one.row = f32[1,1,8] dynamic-slice(wide, zero, i, zero), dynamic_slice_sizes={1,1,8}\n"
         "  last = f32[1,8] reshape(one.row)",
         "%one.row, between it and its store, has an index from %i, which depends on the loop's "
         "state"),
        # All operands of element-wise ones have all dimensions.
        ("k = f32[] constant(2)\n  flag = pred[] constant(true)\n"
         "  flat = f32[1,8] reshape(ar)\n  last = f32[1,8] select(flag, flat, part)",
         "%last takes the scalar %flag for all its elements"),
        ("flags = pred[1,8] compare(ar, part), direction=LT\n"
         "  last = f32[1,8] select(flags, ar, part)", None),
    ],
)  # fmt: skip
def test_what_all_trips_have_alike(formatting: str, reason: str | None) -> None:
    body = f"{AR}  wide = f32[1,2,8] broadcast(ar), dimensions={{0,2}}\n  {formatting}{STORE}"
    if "wide" not in formatting:
        body = body.replace("  wide = f32[1,2,8] broadcast(ar), dimensions={0,2}\n", "")
    called = {
        "number": "number {\n  ROOT n = f32[] constant(3)\n}\n\n",
        "both": "both {\n  c0 = f32[] parameter(0)\n  c1 = f32[] parameter(1)\n"
        "  c2 = f32[] parameter(2)\n  c3 = f32[] parameter(3)\n"
        "  ROOT p = (f32[], f32[]) tuple(c0, c1)\n}\n\n",
    }
    text = loop(body)
    for name, computation in called.items():
        if f"to_apply={name}" in formatting:
            text = text.replace("body {", f"{computation}body {{", 1)
    check(text, reason)


@pytest.mark.parametrize(
    ("rows", "trips", "reason"),
    [
        (4, 4, None),
        (4, 3, "%stored has 4 slices, its loop 3 trips"),
        (4, 5, "%stored has 4 slices, its loop 5 trips"),
    ],
)
def test_each_trip_has_a_slice(rows: int, trips: int, reason: str | None) -> None:
    check(loop(f"{AR}  last = f32[1,8] copy(ar){STORE}", limit=trips), reason)


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("add(i, i)", "%stored does not store in neighboring slices"),
        ("subtract(three, i)", None),
        ("add(three, i)", None),
        ("multiply(i, less)", None),
    ],
)
def test_neighboring_slices(index: str, reason: str | None) -> None:
    body = f"""{AR}  three = s32[] constant(3)
  less = s32[] constant(-1)
  at = s32[] {index}
  last = f32[1,8] copy(ar){STORE.replace("i, zero", "at, zero")}"""
    check(loop(body), reason)


def test_several_stores_of_one_value_are_at_the_same_places() -> None:
    body = f"""{AR}  three = s32[] constant(3)
  at = s32[] subtract(three, i)
  last = f32[1,8] copy(ar){STORE}
  other = f32[4,8] dynamic-update-slice(y, last, PLACE, zero)"""
    read = "part = f32[1,8] dynamic-slice(y, i, zero), dynamic_slice_sizes={1,8}"
    text = loop(body, ends="stored, other")
    assert read in text
    text = text.replace(read, "n = f32[] convert(i)\n  part = f32[1,8] broadcast(n), dimensions={}")
    check(text.replace("PLACE", "i"), None)
    check(text.replace("PLACE", "at"), "%other does not store where %stored does")
