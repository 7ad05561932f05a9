"""Formatting that runs once for all trips behind a loop, and formatting that cannot."""

from __future__ import annotations

import pytest
from tests.passes.collectives.collective_pipeliner.loops import loop, pipelined, the_loops

from hloopt.ir import Opcode

AR = "  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum\n"
STORE = "\n  stored = f32[4,8] dynamic-update-slice(x, last, i, zero)"


def sunk(formatting: str, *, changes: bool = True, store: str = STORE) -> list[str]:
    """The remarks on a loop whose all-reduce is formatted; its result stays the same."""
    text = loop(AR + formatting + store)
    module, remarks = pipelined(text, changes=changes, pipelining_direction="forward-sink")
    if changes:
        [around] = the_loops(module)
        [reduce] = module.instructions(Opcode.ALL_REDUCE)
        assert reduce.parent is around.parent
        assert reduce.shape.dimensions == (4, 1, 8)
    return remarks


@pytest.mark.parametrize(
    "formatting",
    [
        "  last = f32[1,8] negate(ar)",
        "  k0 = f32[] constant(3)\n  wide = f32[1,8] broadcast(k0), dimensions={}\n"
        "  last = f32[1,8] multiply(ar, wide)",
        "  k0 = f32[1,8] constant({{1,2,3,4,5,6,7,8}})\n  last = f32[1,8] multiply(ar, k0)",
        "  t = f32[8,1] transpose(ar), dimensions={1,0}\n  last = f32[1,8] reshape(t)",
        "  t = f32[2,4] reshape(ar)\n  u = f32[4,2] transpose(t), dimensions={1,0}\n"
        "  last = f32[1,8] reshape(u)",
        "  wide = f32[1,8,2] broadcast(ar), dimensions={0,1}\n"
        "  s = f32[1,8,1] slice(wide), slice={[0:1], [0:8], [1:2]}\n  last = f32[1,8] reshape(s)",
        "  wide = f32[1,2,8] broadcast(ar), dimensions={0,2}\n  k0 = f32[] constant(1)\n"
        "  last = f32[1,8] reduce(wide, k0), dimensions={1}, to_apply=sum",
        "  k0 = f32[] constant(7)\n  padded = f32[1,12] pad(ar, k0), padding=0_0x1_3\n"
        "  last = f32[1,8] slice(padded), slice={[0:1], [0:8]}",
        "  n = f32[1,8] negate(ar)\n  b = f32[1,16] concatenate(ar, n), dimensions={1}\n"
        "  last = f32[1,8] slice(b), slice={[0:1], [4:12]}",
        "  k = s32[] constant(2)\n  n = f32[1,8] negate(ar)\n"
        "  b = f32[1,16] concatenate(ar, n), dimensions={1}\n"
        "  last = f32[1,8] dynamic-slice(b, zero, k), dynamic_slice_sizes={1,8}",
    ],
)
def test_formatting_that_runs_for_all_trips_at_once(formatting: str) -> None:
    assert sunk(formatting) == ["applied %ar: sunk: once for all trips, after %w"]


@pytest.mark.parametrize(
    ("constraint", "after"),
    [("", None), (", operand_layout_constraints={f32[1,8]{0,1}}", "{f32[4,1,8]{1,2,0}}")],
)
def test_a_layout_constraint_holds_for_all_trips(constraint: str, after: str | None) -> None:
    call = '  last = f32[1,8] custom-call(ar), custom_call_target="LayoutConstraint"'
    text = loop(AR + call + constraint + STORE)
    module, _ = pipelined(text, pipelining_direction="forward-sink")
    [constrained] = module.instructions(Opcode.CUSTOM_CALL)
    assert constrained.shape.dimensions == (4, 1, 8)
    assert constrained.attributes.get("operand_layout_constraints") == after


@pytest.mark.parametrize(
    ("formatting", "store", "reason"),
    [
        ("", STORE.replace("last", "ar").replace("i, zero", "zero, i"),
         "%stored does not store in slices of dimension 0"),
        ("  last = f32[2,8] broadcast(flat), dimensions={1}", STORE,
         "%stored does not store one whole slice"),
        ("  last = f32[1,4] slice(ar), slice={[0:1], [0:4]}", STORE,
         "%stored does not store one whole slice"),
        ("  other = f32[1,8] slice(y), slice={[0:1], [0:8]}\n  first = f32[1,1] slice(other), "
         "slice={[0:1], [0:1]}\n  k0 = f32[] reshape(first)\n"
         "  padded = f32[1,9] pad(ar, k0), padding=0_0x0_1\n"
         "  last = f32[1,8] slice(padded), slice={[0:1], [1:9]}", STORE,
         "%padded starts from %k0 in each trip"),
        ("  wide = f32[1,2,8] broadcast(ar), dimensions={0,2}\n  e = f32[1,1] slice(part), "
         "slice={[0:1], [0:1]}\n  k0 = f32[] reshape(e)\n"
         "  last = f32[1,8] reduce(wide, k0), dimensions={1}, to_apply=sum", STORE,
         "%last starts from %k0 in each trip"),
        ('  last = f32[1,8] custom-call(ar), custom_call_target="other"', STORE,
         "%last is a custom-call, which cannot run for all trips at once"),
    ],
)  # fmt: skip
def test_what_cannot_run_for_all_trips_at_once(formatting: str, store: str, reason: str) -> None:
    if "(flat)" in formatting:
        formatting = "  flat = f32[8] reshape(ar)\n" + formatting
    assert sunk(formatting, changes=False, store=store) == [f"missed %ar: not pipelined: {reason}"]


def test_stores_of_every_other_slice_are_not_sunk() -> None:
    text = loop(AR + STORE.replace("last", "ar"), step=2, limit=8)
    _, remarks = pipelined(text, changes=False, pipelining_direction="forward-sink")
    assert remarks == ["missed %ar: not pipelined: %stored does not store in neighboring slices"]


def test_as_many_slices_as_trips_are_needed() -> None:
    text = loop(AR + STORE.replace("last", "ar"), limit=3)
    _, remarks = pipelined(text, changes=False, pipelining_direction="forward-sink")
    assert remarks == ["missed %ar: not pipelined: %stored has 4 slices, its loop 3 trips"]


@pytest.mark.parametrize("start", [-2, -1, 0, 1, 2])
def test_slices_that_no_trip_stores_keep_what_they_held(start: int) -> None:
    text = loop(AR + STORE.replace("last", "ar"), start=start, limit=start + 4)
    pipelined(text, pipelining_direction="forward-sink")


def test_a_store_into_part_of_what_each_trip_formats() -> None:
    formatting = """  z = f32[] constant(0)
  none = f32[1,8,4] broadcast(z), dimensions={}
  deep = f32[1,8,1] reshape(ar)
  set = f32[1,8,4] dynamic-update-slice(none, deep, zero, zero, AT)
  weights = f32[4] constant({1,2,3,4})
  all = f32[1,8,4] broadcast(weights), dimensions={2}
  told = f32[1,8,4] multiply(set, all)
  last = f32[1,8] reduce(told, z), dimensions={2}, to_apply=sum"""
    sunk(formatting.replace("AT", "i"))
    outside = f"  n = s32[] add(i, i)\n{formatting.replace('AT', 'n')}"
    assert sunk(outside, changes=False) == [
        "missed %ar: not pipelined: index %n of %set is not known to be inside"
    ]


@pytest.mark.parametrize("threshold", [8, 9])
def test_a_large_collective_waits_for_the_last_round(threshold: int) -> None:
    """A collective no larger than the threshold is sunk in the last round."""
    text = loop(AR + STORE.replace("last", "ar"))
    _, remarks = pipelined(
        text,
        pipelining_direction="forward-sink",
        collective_size_threshold_to_delay_sinking=threshold,
    )
    assert [remark.split(":")[0] for remark in remarks] == ["applied %ar"]
