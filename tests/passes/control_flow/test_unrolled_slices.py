"""Places of dynamic slices that XLA:GPU notes, after loops were unrolled."""

from __future__ import annotations

import json

import pytest

from hloopt.ir import Module, Opcode
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

TEXT = """HloModule m

condition {
  s = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(TRIPS)
  ROOT less = pred[] compare(i, limit), direction=LT
}

body {
  s = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  array = f32[8,4]{1,0} get-tuple-element(s), index=1
  row = f32[1,4]{1,0} get-tuple-element(s), index=2
  zero = s32[] constant(0)
  updated = f32[8,4]{1,0} dynamic-update-slice(array, row, i, zero), backend_config=CONFIG
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) tuple(next, updated, row)
}

ENTRY main {
  array = f32[8,4]{1,0} parameter(0)
  row = f32[1,4]{1,0} parameter(1)
  init = s32[] constant(0)
  t = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) tuple(init, array, row)
  ROOT w = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) while(t), condition=condition, body=body
}
"""
FUSED = """
slicing {
  array = f32[8,4]{1,0} parameter(0)
  row = f32[1,4]{1,0} parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT updated = f32[8,4]{1,0} dynamic-update-slice(array, row, i, zero), backend_config=CONFIG
}
"""


OUTER = """
forever {
  s = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(4)
  ROOT less = pred[] compare(i, limit), direction=LT
}

around {
  s = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  array = f32[8,4]{1,0} get-tuple-element(s), index=1
  row = f32[1,4]{1,0} get-tuple-element(s), index=2
  init = s32[] constant(0)
  t = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) tuple(init, array, row)
  w = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) while(t), condition=condition, body=body
  made = f32[8,4]{1,0} get-tuple-element(w), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT u = (s32[], f32[8,4]{1,0}, f32[1,4]{1,0}) tuple(next, made, row)
}

ENTRY"""


def unrolled(
    text: str, trips: int, note: object, strategy: str = "double-buffer", loops: str = "w"
) -> Module:
    config = json.dumps({"dynamic_slice_config": note})
    module = parse_module(text.replace("TRIPS", str(trips)).replace("CONFIG", config))
    unroll = create_pass(
        "double-buffer-loop-unrolling", {"unroll_strategy": strategy, "loops": [loops]}
    )
    assert unroll.run(module, PassContext())
    return module


def notes(module: Module) -> list[object]:
    slices = module.instructions(Opcode.DYNAMIC_UPDATE_SLICE)
    found = (backend_config(each).get("dynamic_slice_config") for each in slices)
    return sorted(found, key=json.dumps)


NOTE = {"loop_index": 0, "byte_offset": 16, "byte_stride": 32}


def test_slices_of_two_trips_in_one_are_one_and_two_strides_apart() -> None:
    assert notes(unrolled(TEXT, 4, NOTE)) == [
        {"loop_index": 0, "byte_offset": 16, "byte_stride": 64},
        {"loop_index": 0, "byte_offset": 48, "byte_stride": 64},
    ]


def test_slices_of_a_trip_before_the_loop_are_at_one_place() -> None:
    assert notes(unrolled(TEXT, 5, NOTE)) == [
        {"byte_offset": 16, "byte_stride": 0},
        {"loop_index": 0, "byte_offset": 48, "byte_stride": 64},
        {"loop_index": 0, "byte_offset": 80, "byte_stride": 64},
    ]


def test_slices_of_all_trips_in_one_are_at_one_place_each() -> None:
    assert notes(unrolled(TEXT, 3, NOTE, "full-unroll")) == [
        {"byte_offset": 16, "byte_stride": 0},
        {"byte_offset": 48, "byte_stride": 0},
        {"byte_offset": 80, "byte_stride": 0},
    ]


def test_numbers_that_are_strings_stay_strings_inside_fusions_too() -> None:
    note = {name: str(value) for name, value in NOTE.items()}
    fusion = "fusion(array, row, i), kind=kLoop, calls=slicing"
    update = "dynamic-update-slice(array, row, i, zero), backend_config=CONFIG"
    text = TEXT.replace(update, fusion).replace("\ncondition {", f"{FUSED}\ncondition {{", 1)
    assert notes(unrolled(text, 4, note)) == [
        {"loop_index": "0", "byte_offset": "16", "byte_stride": "64"},
        {"loop_index": "0", "byte_offset": "48", "byte_stride": "64"},
    ]


@pytest.mark.parametrize(
    ("note", "after"),
    [
        ({"byte_offset": 16, "byte_stride": 0}, {"byte_offset": 16, "byte_stride": 0}),
        ({**NOTE, "loop_index": 1}, {**NOTE, "loop_index": 1}),
        ({**NOTE, "byte_stride": "far"}, {**NOTE, "byte_stride": "far"}),
        ({**NOTE, "byte_offset": 1.5}, {**NOTE, "byte_offset": 1.5}),
        ({**NOTE, "byte_offset": True}, {**NOTE, "byte_offset": True}),
    ],
)
def test_notes_on_no_loop_or_another_stay(note: object, after: object) -> None:
    assert notes(unrolled(TEXT, 4, note)) == [after, after]


@pytest.mark.parametrize(
    ("index", "offsets"),
    [(0, [(16, 32), (16, 32)]), (1, [(16, 64), (48, 64)]), (2, [(16, 32), (16, 32)])],
)
def test_inner_loops_have_notes_on_the_loop_around_them(
    index: int, offsets: list[tuple[int, int]]
) -> None:
    text = TEXT.replace("condition=condition, body=body", "condition=forever, body=around")
    text = text.replace("ROOT w =", "ROOT outer =").replace("\nENTRY", OUTER)
    found = notes(unrolled(text, 4, {**NOTE, "loop_index": index}, loops="outer"))
    assert found == [
        {"loop_index": index, "byte_offset": offset, "byte_stride": stride}
        for offset, stride in offsets
    ]


def test_notes_in_what_several_places_call_go() -> None:
    call = "call(array, row, i), to_apply=slicing"
    update = "dynamic-update-slice(array, row, i, zero), backend_config=CONFIG"
    text = TEXT.replace(update, call).replace("\ncondition {", f"{FUSED}\ncondition {{", 1)
    assert set(map(str, notes(unrolled(text, 4, NOTE)))) == {"None"}


def test_notes_in_what_is_called_inside_an_inner_loop_and_beside_it_go() -> None:
    call = "call(array, row, i), to_apply=slicing"
    update = "dynamic-update-slice(array, row, i, zero), backend_config=CONFIG"
    text = TEXT.replace(update, call).replace("\ncondition {", f"{FUSED}\ncondition {{", 1)
    text = text.replace("condition=condition, body=body", "condition=forever, body=around")
    text = text.replace("ROOT w =", "ROOT outer =").replace("\nENTRY", OUTER)
    again = f"  again = f32[8,4]{{1,0}} {call}\n  made = "
    text = text.replace("  made = ", again).replace("(next, made, row)", "(next, again, row)")
    assert set(map(str, notes(unrolled(text, 4, NOTE, loops="outer")))) == {"None"}


@pytest.mark.parametrize(
    ("trips", "strategy"), [(4, "double-buffer"), (5, "double-buffer"), (3, "full-unroll")]
)
def test_notes_in_the_condition_go(trips: int, strategy: str) -> None:
    look = """
look {
  p = f32[8,4]{1,0} parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  ROOT row = f32[1,4]{1,0} dynamic-slice(p, i, zero), dynamic_slice_sizes={1,4},
    backend_config=CONFIG
}

condition {"""
    read = """
  p = f32[8,4]{1,0} get-tuple-element(s), index=1
  row = f32[1,4]{1,0} fusion(p, i), kind=kLoop, calls=look
  limit ="""
    text = TEXT.replace("\ncondition {", look, 1).replace("\n  limit =", read, 1)
    (looking,) = unrolled(text, trips, NOTE, strategy).instructions(Opcode.DYNAMIC_SLICE)
    assert "dynamic_slice_config" not in backend_config(looking)
