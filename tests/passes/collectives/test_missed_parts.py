"""Conditions that keep all-reduces whole of which each device keeps a part, with their remarks."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay

HEADER = """HloModule m, num_partitions=4
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  w = f32[8,8] parameter(2)
  v = f32[9] parameter(3)
  s = s32[] parameter(4)
  zero = s32[] constant(0)
  id = u32[] partition-id()
  same = s32[4] constant({0, 0, 0, 0})
  own = s32[4] constant({0, 2, 4, 6})
  pairs = s32[4] constant({0, 4, 0, 4})
  uneven = s32[4] constant({0, 0, 0, 4})
"""
GLOBAL = "to_apply=sum, channel_id=1, use_global_device_ids=true"
ALL = f"{GLOBAL}, replica_groups={{{{0,1,2,3}}}}"


def kept(table: str, body: str) -> str:
    """A module in which each device keeps the part of `r` that begins where `table` has it."""
    begin = f"entry = s32[1] dynamic-slice({table}, id), dynamic_slice_sizes={{1}}"
    return f"{HEADER}{begin}\nbegin = s32[] reshape(entry)\n{body}\n}}\n"


@pytest.mark.parametrize(
    ("table", "reduced", "part", "reason"),
    [
        (
            "pairs",
            "f32[8] all-reduce(x), to_apply=sum, channel_id=1, replica_groups={{0}}",
            "f32[4] dynamic-slice(r, begin), dynamic_slice_sizes={4}",
            "its groups are no global device ids",
        ),
        (
            "pairs",
            f"f32[8] all-reduce(x), {ALL}",
            "f32[4] dynamic-slice(r, begin), dynamic_slice_sizes={4}",
            "no other all-reduce has the groups {{0,1},{2,3}}",
        ),
        (
            "uneven",
            f"f32[8] all-reduce(x), {ALL}",
            "f32[4] dynamic-slice(r, begin), dynamic_slice_sizes={4}",
            "some parts are kept by more devices than others",
        ),
        (
            "same",
            f"f32[8] all-reduce(x), {ALL}",
            "f32[2] dynamic-slice(r, begin), dynamic_slice_sizes={2}",
            "all devices keep the same part",
        ),
        (
            "own",
            f"f32[8] all-reduce(x), {ALL}",
            "f32[2] dynamic-slice(r, begin), dynamic_slice_sizes={2}",
            "each has its own part",
        ),
        (
            "own",
            f"f32[8,8] all-reduce(w), {ALL}",
            "f32[2,2] dynamic-slice(r, begin, begin), dynamic_slice_sizes={2,2}",
            "%part slices 2 dimensions, not one",
        ),
        (
            "own",
            f"f32[8] all-reduce(x), {ALL}",
            "f32[2] dynamic-slice(r, s), dynamic_slice_sizes={2}",
            "%s depends on more than the number of the device",
        ),
    ],
)
def test_all_reduces_that_are_not_split(table: str, reduced: str, part: str, reason: str) -> None:
    text = kept(
        table,
        f"one = f32[8] all-reduce(y), {GLOBAL}, replica_groups={{{{0,3}},{{1,2}}}}\n"
        f"two = f32[8] all-reduce(y), {ALL}\n"
        f"r = {reduced}\npart = {part}\nROOT t = tuple(one, two, part)",
    )
    assert reasons_to_stay("all-reduce-splitter", text) == [reason]


@pytest.mark.parametrize(
    ("table", "body", "reason"),
    [
        (
            "own",
            f"r = f32[8] all-reduce(x), {GLOBAL}, replica_groups={{{{0,1,2}},{{3}}}}\n"
            "ROOT part = f32[4] dynamic-slice(r, begin), dynamic_slice_sizes={4}",
            "its replica groups have different sizes",
        ),
        (
            "pairs",
            f"r = f32[8] all-reduce(x), {ALL}\n"
            "ROOT part = f32[4] dynamic-slice(r, begin), dynamic_slice_sizes={4}",
            "%part keeps 4 of 8 elements, and there are 4 devices",
        ),
        (
            "pairs",
            f"r = f32[8] all-reduce(x), {ALL}\n"
            "ROOT part = f32[2] dynamic-slice(r, begin), dynamic_slice_sizes={2}",
            "device 1, of rank 1, keeps the part from 4 on, not 2",
        ),
        (
            "own",
            f"r = f32[8,8] all-reduce(w), {ALL}\nflat = f32[4,16] reshape(r)\n"
            "row = s32[] convert(id)\n"
            "ROOT part = f32[1,16] dynamic-slice(flat, row, zero), dynamic_slice_sizes={1,16}",
            "%flat changes the dimension that is sliced",
        ),
        (
            "own",
            f"r = f32[9] all-reduce(v), {ALL}\nwide = f32[1,9] reshape(r)\n"
            "ROOT part = f32[1,2] dynamic-slice(wide, zero, begin), dynamic_slice_sizes={1,2}",
            "%wide changes the dimension that is sliced",
        ),
        (
            "own",
            f"r = f32[8] all-reduce(x), {ALL}\n"
            "ROOT part = f32[8] dynamic-slice(r, begin), dynamic_slice_sizes={8}",
            "%part slices 0 dimensions, not one",
        ),
        (
            "own",
            f"r = f32[8] all-reduce(x), {ALL}, constrain_layout=true\n"
            "ROOT part = f32[2] dynamic-slice(r, begin), dynamic_slice_sizes={2}",
            "it has several operands, or its layout is constrained",
        ),
        (
            "own",
            f"r = f32[8] all-reduce(x), {ALL}\n"
            "part = f32[2] dynamic-slice(r, begin), dynamic_slice_sizes={2}\n"
            "ROOT t = tuple(r, part)",
            "not only %part uses it",
        ),
        (
            "own",
            f"r = f32[8] all-reduce(x), {ALL}, control-predecessors={{y}}\n"
            "ROOT part = f32[2] dynamic-slice(r, begin), dynamic_slice_sizes={2}",
            "%r has control dependencies",
        ),
    ],
)
def test_all_reduces_that_do_not_become_reduce_scatters(table: str, body: str, reason: str) -> None:
    assert reasons_to_stay("reduce-scatter-creator", kept(table, body)) == [reason]


def test_groups_of_some_devices_do_not_scatter_to_all() -> None:
    text = kept(
        "pairs",
        f"all = f32[8] all-reduce(y), {ALL}\n"
        f"r = f32[8] all-reduce(x), {GLOBAL}, replica_groups={{{{0,1}}}}\n"
        "part = f32[4] dynamic-slice(r, begin), dynamic_slice_sizes={4}\n"
        "ROOT t = tuple(all, part)",
    ).replace(", num_partitions=4", "")
    reasons = reasons_to_stay("reduce-scatter-creator", text)
    assert reasons == ["its replica groups do not hold each device once"]
