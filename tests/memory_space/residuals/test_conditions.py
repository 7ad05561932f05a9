"""Stacks that `while-loop-residual-offloader` leaves in device memory, and the reasons."""

from __future__ import annotations

import pytest
from tests.memory_space.residuals.programs import FUSED, PASS, UNFUSED, changed, copied
from tests.passes.checked_run import reasons_to_stay

from hloopt.diagnostics import PassRefused
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

_STATE = "(s32[], f32[8]{0}, f32[4,8]{1,0})"
_RESULT = "ROOT r = f32[8]{0} get-tuple-element(gradients), index=1"
_RESIDUALS = "residuals = f32[4,8]{1,0} get-tuple-element(loop), index=2"
_WRITE = "written = f32[4,8]{1,0} dynamic-update-slice(stack, row, i, zero)"
_READ = "row = f32[1,8]{1,0} dynamic-slice(stack, place, zero), dynamic_slice_sizes={1,8}"
_ROOT = f"ROOT t = {_STATE} tuple(next, sine, written)"
_LIMIT = (
    "trips = s32[] constant(4)\n  ROOT go = pred[] compare(i, trips), direction=LT\n}\n\nbackward"
)
_OUT = (_RESULT, "ROOT r = f32[4,8]{1,0} get-tuple-element(gradients), index=2")


def _stays(text: str) -> list[str]:
    return [
        reason.removeprefix("stays in device memory: ")
        for reason in reasons_to_stay(PASS, text, min_size=0)
    ]


CASES = {
    "a result": ([_OUT], "%main returns it"),
    "not read": (
        [(_READ, "row = f32[1,8]{1,0} reshape(g)")],
        "nothing reads it once it is written",
    ),
    "read where it is written": (
        [(_WRITE, _WRITE + "\n  old = f32[1,8]{1,0} dynamic-slice(stack, i, zero), "
          "dynamic_slice_sizes={1,8}\n  flat = f32[8]{0} reshape(old)"),
         (_ROOT, f"both = f32[8]{{0}} add(sine, flat)\n"
          f"  ROOT t = {_STATE} tuple(next, both, written)")],
        "%loop does more with it than to write slices",
    ),
    "a slice read back as it is written": (
        [(_ROOT, "old = f32[1,8]{1,0} dynamic-slice(written, i, zero), dynamic_slice_sizes={1,8}\n"
          "  flat = f32[8]{0} reshape(old)\n  both = f32[8]{0} add(sine, flat)\n"
          f"  ROOT t = {_STATE} tuple(next, both, written)")],
        "%loop does more with it than to write slices",
    ),
    "read by the condition of the loop that writes": (
        [(_LIMIT, "trips = s32[] constant(4)\n"
          "  kept = f32[4,8]{1,0} get-tuple-element(s), index=2\n"
          "  zero = s32[] constant(0)\n"
          "  first = f32[1,1]{1,0} dynamic-slice(kept, zero, zero), dynamic_slice_sizes={1,1}\n"
          "  one = f32[] reshape(first)\n  sane = pred[] compare(one, one), direction=EQ\n"
          "  goes = pred[] compare(i, trips), direction=LT\n"
          "  ROOT go = pred[] and(goes, sane)\n}\n\nbackward")],
        "%loop does more with it than to write slices",
    ),
    "changed by the loop that reads": (
        [("ROOT t = (s32[], f32[8]{0}, f32[4,8]{1,0}) tuple(next, product, stack)",
          "less = f32[4,8]{1,0} negate(stack)\n"
          "  ROOT t = (s32[], f32[8]{0}, f32[4,8]{1,0}) tuple(next, product, less)")],
        "%gradients does more with it than to write slices",
    ),
    "read as a whole": (
        [(_RESIDUALS, _RESIDUALS + "\n  all = f32[4,8]{1,0} sine(residuals)"),
         (_RESULT, "g = f32[8]{0} get-tuple-element(gradients), index=1\n"
          "  ROOT r = (f32[8]{0}, f32[4,8]{1,0}) tuple(g, all)")],
        "%all does more with it than to read slices",
    ),
    "an index of another slice": (
        [(_READ, _READ + "\n"
          "  numbers = s32[4,8]{1,0} convert(stack)\n  some = s32[1,8]{1,0} slice(numbers), "
          "slice={[0:1], [0:8]}")],
        "%numbers does more with it than to read slices",
    ),
    "slices of two dimensions": (
        [(_READ, "part = f32[1,4]{1,0} dynamic-slice(stack, place, zero), "
          "dynamic_slice_sizes={1,4}\n"
          "  row = f32[1,8]{1,0} concatenate(part, part), dimensions={1}")],
        "%part is not a slice of one dimension",
    ),
    "everything at once": (
        [(_READ, "whole = f32[4,8]{1,0} dynamic-slice(stack, place, zero), "
          "dynamic_slice_sizes={4,8}\n  row = f32[1,8]{1,0} slice(whole), slice={[0:1], [0:8]}")],
        "%whole is not a slice of one dimension",
    ),
    "columns": (
        [(_READ, "column = f32[4,1]{1,0} dynamic-slice(stack, zero, place), "
          "dynamic_slice_sizes={4,1}\n  four = f32[4]{0} reshape(column)\n"
          "  row = f32[1,8]{1,0} broadcast(place_), dimensions={}"),
         ("place = s32[] subtract(last, i)",
          "place = s32[] subtract(last, i)\n  place_ = f32[] convert(place)")],
        "the slice of %column is not one piece of memory",
    ),
    "another layout": (
        [(_READ, "other = f32[1,8]{0,1} dynamic-slice(stack, place, zero), "
          "dynamic_slice_sizes={1,8}\n  row = f32[1,8]{1,0} copy(other)")],
        "the slice of %other is not one piece of memory",
    ),
    "a slice too few": (
        [(_LIMIT, _LIMIT.replace("constant(4)", "constant(3)"))],
        "nothing writes its slice 3 before it is read",
    ),
    "every second slice": (
        [("one = s32[] constant(1)\n  next = s32[] add(i, one)\n  " + _ROOT,
          "one = s32[] constant(2)\n  next = s32[] add(i, one)\n  " + _ROOT)],
        "nothing writes its slice 1 before it is read",
    ),
    "trips not known": (
        [(_LIMIT, "x = f32[8]{0} get-tuple-element(s), index=1\n"
          "  part = f32[1]{0} slice(x), slice={[0:1]}\n  one = f32[] reshape(part)\n"
          "  trips = s32[] convert(one)\n  ROOT go = pred[] compare(i, trips), direction=LT\n}"
          "\n\nbackward")],
        "the slices that %written writes are not known",
    ),
    "index not known": (
        [(_WRITE, "some = f32[1]{0} slice(x), slice={[0:1]}\n  one_ = f32[] reshape(some)\n"
          "  number = s32[] convert(one_)\n"
          "  written = f32[4,8]{1,0} dynamic-update-slice(stack, row, number, zero)")],
        "the slices that %written writes are not known",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "reason"), CASES.values(), ids=CASES.keys())
def test_a_stack_stays(changes: list[tuple[str, str]], reason: str) -> None:
    assert _stays(changed(UNFUSED, *changes)) == [reason]


FUSED_CASES = {
    "a fusion that reads more": (
        [("ROOT flat = f32[8]{0} bitcast(row)",
          "other = f32[1,8]{1,0} slice(a), slice={[0:1], [0:8]}\n"
          "  sum = f32[1,8]{1,0} add(row, other)\n  ROOT flat = f32[8]{0} bitcast(sum)")],
        "%again does more with it than to read slices",
    ),
    "an index from an array": (
        [("fused_slice {\n  a = f32[4,8]{1,0} parameter(0)\n  i = s32[] parameter(1)\n"
          "  last = s32[] constant(3)\n  place = s32[] subtract(last, i)",
          "fused_slice {\n  a = f32[4,8]{1,0} parameter(0)\n  i = s32[] parameter(1)\n"
          "  table = s32[2]{0} constant({3, 2})\n  one = s32[1]{0} slice(table), slice={[0:1]}\n"
          "  last = s32[] reshape(one)\n  place = s32[] subtract(last, i)")],
        "%again computes the index of a slice from arrays",
    ),
    "a fused computation of two fusions": (
        [("again = f32[8]{0} fusion(a, i)",
          "twin = f32[8]{0} fusion(b, i), kind=kLoop, calls=fused_slice\n"
          "  again = f32[8]{0} fusion(a, i)"),
         ("sum = f32[8]{0} add(product, again)", "twins = f32[8]{0} add(twin, again)\n"
          "  sum = f32[8]{0} add(product, twins)")],
        "%again does more with it than to read slices",
    ),
    "a fused computation of two writes": (
        [("stored = f32[4,8]{1,0} fusion(b, x, i), kind=kLoop, calls=fused_store",
          "stored = f32[4,8]{1,0} fusion(b, x, i), kind=kLoop, calls=fused_update")],
        None,
    ),
    "a fusion whose result two read": (
        [("next = s32[] add(i, one)\n  ROOT t = (s32[], f32[8]{0}, f32[4,8]{1,0}, "
          "f32[4,8]{1,0}) tuple(next, cosine, updated, stored)",
          "next = s32[] add(i, one)\n  less = f32[4,8]{1,0} negate(updated)\n"
          "  ROOT t = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(next, cosine, "
          "updated, stored)")],
        "%loop does more with it than to write slices",
    ),
    "a fusion that states what it shares": (
        [("updated = f32[4,8]{1,0} fusion(a, x, i), kind=kLoop, calls=fused_update",
          "updated = f32[4,8]{1,0} fusion(a, x, i), kind=kLoop, calls=fused_update, "
          "output_to_operand_aliasing={{}: (0, {})}")],
        None,
    ),
    "a fusion that reads what it writes": (
        [("ROOT written = f32[4,8]{1,0} dynamic-update-slice(stack, row, place, zero)",
          "old = f32[1,8]{1,0} dynamic-slice(stack, place, zero), dynamic_slice_sizes={1,8}\n"
          "  sum = f32[1,8]{1,0} add(row, old)\n"
          "  ROOT written = f32[4,8]{1,0} dynamic-update-slice(stack, sum, place, zero)")],
        None,
    ),
    "a fusion that goes on after the write": (
        [("ROOT written = f32[4,8]{1,0} dynamic-update-slice(stack, row, place, zero)",
          "written = f32[4,8]{1,0} dynamic-update-slice(stack, row, place, zero)\n"
          "  ROOT less = f32[4,8]{1,0} negate(written)")],
        None,
    ),
    "an update with a part of itself": (
        [("ROOT written = f32[4,8]{1,0} dynamic-update-slice(stack, row, place, zero)",
          "ROOT written = f32[4,8]{1,0} dynamic-update-slice(stack, stack, place, zero)")],
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "reason"), FUSED_CASES.values(), ids=FUSED_CASES.keys())
def test_a_stack_of_fusions_stays(changes: list[tuple[str, str]], reason: str | None) -> None:
    """Where no write is found, the first array is no stack, and nothing is said of it."""
    module, context = parse_module(changed(FUSED, *changes)), PassContext(PASS)
    assert create_pass(PASS, {"min_size": 0, "names": ["fill_a"]}).run(module, context) is False
    said = [remark.reason for remark in context.remarks]
    assert said == ([] if reason is None else [f"stays in device memory: {reason}"])


def test_a_body_of_two_loops_stays() -> None:
    text = changed(
        UNFUSED,
        (_RESULT,
         f"more = {_STATE} while(state), condition=backward_condition, body=backward\n"
         "  g = f32[8]{0} get-tuple-element(gradients), index=1\n"
         "  z = f32[8]{0} get-tuple-element(more), index=1\n  ROOT r = f32[8]{0} add(g, z)"),
    )  # fmt: skip
    assert _stays(text) == ["%backward is called from several places"]


def test_a_write_after_reading_keeps_it() -> None:
    text = changed(
        copied(UNFUSED, "forward", "forward_condition"),
        (_RESULT,
         "kept = f32[4,8]{1,0} get-tuple-element(gradients), index=2\n"
         f"  again = {_STATE} tuple(first, y, kept)\n"
         f"  more = {_STATE} while(again), condition=forward_condition_2, body=forward_2\n"
         "  ROOT r = f32[8]{0} get-tuple-element(gradients), index=1"),
    )  # fmt: skip
    assert _stays(text) == ["%more does more with it than to read slices"]


def test_what_is_not_filled_is_no_stack() -> None:
    text = changed(UNFUSED, ("broadcast(seven), dimensions={}", "iota(), iota_dimension=0"))
    assert _stays(text) == []


def test_a_scheduled_module_is_refused() -> None:
    module = parse_module(UNFUSED.replace("HloModule m", "HloModule m, is_scheduled=true"))
    with pytest.raises(PassRefused) as refused:
        create_pass(PASS, {"min_size": 0}).run(module, PassContext(PASS))
    assert str(refused.value) == "stacks move to host memory before there is a schedule"
    assert refused.value.help == "run hlo-descheduler before it"


def test_a_write_in_a_loop_of_each_trip_is_none() -> None:
    text = changed(
        copied(UNFUSED, "forward", "forward_condition"),
        ("written = f32[4,8]{1,0} dynamic-update-slice(stack, row, i, zero)\n  sine = f32[8]{0} "
         "sine(x)\n  one = s32[] constant(1)\n  next = s32[] add(i, one)\n"
         f"  {_ROOT}\n}}\n\nforward_condition {{",
         f"begin = {_STATE} tuple(zero, x, stack)\n"
         f"  inner = {_STATE} while(begin), condition=forward_condition_2, body=forward_2\n"
         "  written = f32[4,8]{1,0} get-tuple-element(inner), index=2\n"
         "  sine = f32[8]{0} sine(x)\n  one = s32[] constant(1)\n  next = s32[] add(i, one)\n"
         f"  {_ROOT}\n}}\n\nforward_condition {{"),
    )  # fmt: skip
    assert _stays(text) == []
