"""Notes on where slices are, as instructions leave loops and arrays change their types."""

from __future__ import annotations

import json

import pytest

from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.rewriting.slice_places import NotedTypes, has_notes, leave_loop
from hloopt.text import parse_module


def note_of(instruction: Instruction) -> object:
    return backend_config(instruction).get("dynamic_slice_config")


def config(note: object) -> str:
    return f"backend_config={json.dumps({'dynamic_slice_config': note})}"


def module_with(
    note: object, kind: str = "dynamic-slice(a, i, z), dynamic_slice_sizes={1,4}"
) -> Module:
    return parse_module(f"""HloModule m
f {{ a = f32[8,4] parameter(0) i = s32[] parameter(1) z = s32[] parameter(2)
  ROOT s = f32[1,4] dynamic-slice(a, i, z), dynamic_slice_sizes={{1,4}} }}
h {{ a = f32[8,4] parameter(0) i = s32[] parameter(1) z = s32[] parameter(2)
  ROOT s = f32[1,4] dynamic-slice(a, i, z), dynamic_slice_sizes={{1,4}}, {config(note)} }}
g {{ a = f32[8,4] parameter(0) i = s32[] parameter(1) z = s32[] parameter(2)
  deeper = f32[1,4] call(a, i, z), to_apply=h
  ROOT s = f32[1,4] dynamic-slice(a, i, z), dynamic_slice_sizes={{1,4}}, {config(note)} }}
ENTRY e {{ a = f32[8,4] parameter(0) i = s32[] parameter(1) z = s32[] parameter(2)
  called = f32[1,4] call(a, i, z), to_apply=g
  again = f32[1,4] call(a, i, z), to_apply=g
  ROOT s = f32[1,4] {kind}, {config(note)} }}""")


@pytest.mark.parametrize(
    ("note", "after"),
    [
        (
            {"loop_index": 0, "byte_offset": 4, "byte_stride": 16},
            {"byte_offset": 36, "byte_stride": 0},
        ),
        ({"loop_index": "0", "byte_stride": "16"}, {"byte_offset": 32, "byte_stride": "0"}),
        (
            {"loop_index": 2, "byte_offset": 4, "byte_stride": 16},
            {"loop_index": 1, "byte_offset": 4, "byte_stride": 16},
        ),
        ({"byte_offset": 4, "byte_stride": 0}, {"byte_offset": 4, "byte_stride": 0}),
        ({"loop_index": 0, "byte_stride": "far"}, {"loop_index": 0, "byte_stride": "far"}),
        ("far", "far"),
    ],
)
def test_slices_outside_of_their_loop_are_where_they_were_in_one_trip(
    note: object, after: object
) -> None:
    root = module_with(note).entry.root
    leave_loop([root], trip=2)
    assert note_of(root) == after


def test_notes_in_what_is_called_elsewhere_too_go() -> None:
    module = module_with({"loop_index": 0, "byte_stride": 16})
    called = module.entry["called"]
    leave_loop([called])
    assert note_of(module.computations["g"].root) is None
    assert not has_notes([called])


def test_notes_go_in_what_one_computation_calls_that_is_called_elsewhere_too() -> None:
    module = module_with({"loop_index": 0, "byte_stride": 16})
    g, h = module.computations["g"], module.computations["h"]
    assert [caller.parent for caller in h.callers] == [g]
    leave_loop([module.entry["called"]])
    assert note_of(h.root) is None


@pytest.mark.parametrize(
    ("element", "note", "after"),
    [
        ("bf16", {"byte_offset": 4, "byte_stride": 16}, {"byte_offset": 2, "byte_stride": 8}),
        ("f64", {"loop_index": 1, "byte_stride": 16}, {"loop_index": 1, "byte_stride": 32}),
        ("bf16", {"byte_offset": 1, "byte_stride": 16}, None),
        ("s4", {"byte_offset": 8, "byte_stride": 16}, None),
        ("bf16", {"byte_offset": "far"}, None),
        ("f32", {"byte_offset": "far"}, {"byte_offset": "far"}),
    ],
)
def test_slices_are_as_many_elements_further_on_in_another_type(
    element: str, note: object, after: object
) -> None:
    module = module_with(note)
    noted = NotedTypes(module)
    array, root = module.entry["a"], module.entry.root
    array.set_shape(array.shape.with_element_type(element))
    noted.restate()
    assert note_of(root) == after


def test_notes_on_other_operations_go_where_types_change() -> None:
    note = {"byte_offset": 4, "byte_stride": 0}
    module = module_with(note, "fusion(a, i, z), kind=kLoop, calls=f")
    noted = NotedTypes(module)
    array, root = module.entry["a"], module.entry.root
    noted.restate()
    assert note_of(root) == note
    array.set_shape(array.shape.with_element_type("bf16"))
    noted.restate()
    assert note_of(root) is None


def test_a_slice_that_is_gone_has_nothing_to_restate() -> None:
    module = module_with({"byte_offset": 4, "byte_stride": 0})
    noted = NotedTypes(module)
    array, root = module.entry["a"], module.entry.root
    array.set_shape(array.shape.with_element_type("bf16"))
    module.entry.set_root(module.entry["called"])
    module.entry.remove(root)
    noted.restate()
    assert note_of(root) == {"byte_offset": 4, "byte_stride": 0}


SHARED = """HloModule m
condition { s = (s32[], f32[8,4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(1) ROOT less = pred[] compare(i, limit), direction=LT }
body { s = (s32[], f32[8,4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  a = f32[8,4] get-tuple-element(s), index=1 one = s32[] constant(1) z = s32[] constant(0)
  row = f32[1,4] dynamic-slice(a, i, z), dynamic_slice_sizes={1,4},
    backend_config={"dynamic_slice_config":{"loop_index":0,"byte_stride":16}}
  minus = f32[1,4] negate(row)
  b = f32[8,4] dynamic-update-slice(a, minus, i, z)
  n = s32[] add(i, one)
  ROOT t = (s32[], f32[8,4]) tuple(n, b) }
ENTRY e { a = f32[8,4] parameter(0) k = s32[] parameter(1) z = s32[] constant(0)
  t = (s32[], f32[8,4]) tuple(z, a)
  once = (s32[], f32[8,4]) while(t), condition=condition, body=body
  u = (s32[], f32[8,4]) tuple(k, a)
  more = (s32[], f32[8,4]) while(u), condition=condition, body=body
  ROOT r = ((s32[], f32[8,4]), (s32[], f32[8,4])) tuple(once, more) }"""


def test_a_body_that_another_loop_has_too_keeps_its_notes() -> None:
    module = parse_module(SHARED)
    assert create_pass("simplify-while-loops").run(module, PassContext())
    rows = {i.parent.name: note_of(i) for i in module.instructions(Opcode.DYNAMIC_SLICE)}
    assert rows == {
        "e": {"byte_stride": 0},
        "body": {"loop_index": 0, "byte_stride": 16},
    }
