"""Uses that read another instruction than before, and copies that are made asynchronous."""

from __future__ import annotations

import pytest
from tests.memory_space.chains import assign, chain

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.passes.rewriting.loop_elements import pass_through
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module

COPIES = {
    "enable_sync_copy_replacement": True,
    "prefetch_interval_picker": {"kind": "instruction-count", "min_overlap": 1, "max_overlap": 9},
}


@pytest.mark.parametrize(
    ("root", "opcode"),
    [
        ("(f32[8], f32[8]) tuple(%n5, %c)", Opcode.COPY),  # the caller finds results in default
        ("f32[8] add(%n5, %c)", Opcode.COPY_DONE),
    ],
)
@pytest.mark.parametrize("is_spilled", [False, True])
def test_a_copy_is_made_asynchronous_unless_it_is_a_result(
    root: str, opcode: Opcode, is_spilled: bool
) -> None:
    text = chain(6).replace("%n3 =", "%c = f32[8] copy(%p1)\n  %n3 =")
    text = text.replace("f32[8] add(%n5, %p1)", root)
    module, _ = assign(text, **COPIES, always_spill_to_default_memory=is_spilled)
    read = module.entry.root.operands[1]
    assert read.opcode is opcode
    assert read.shape.layout.memory_space == (opcode is Opcode.COPY_DONE)


LOOP = """HloModule m, is_scheduled=true

%body (b: (f32[8], f32[8], s32[])) -> (f32[8], f32[8], s32[]) {
  %b = (f32[8], f32[8], s32[]) parameter(0)
  %b0 = f32[8] get-tuple-element(%b), index=0
  %b1 = f32[8] get-tuple-element(%b), index=1
  %b2 = s32[] get-tuple-element(%b), index=2
  %m0 = f32[8] negate(%b1)
  %m1 = f32[8] negate(%m0)
  %m2 = f32[8] negate(%m1)
  %m3 = f32[8] negate(%m2)
  %one = s32[] constant(1)
  %next = s32[] add(%b2, %one)
  ROOT %bt = (f32[8], f32[8], s32[]) tuple(%b0, %m3, %next)
}

%condition (c: (f32[8], f32[8], s32[])) -> pred[] {
  %c = (f32[8], f32[8], s32[]) parameter(0)
  %c2 = s32[] get-tuple-element(%c), index=2
  %three = s32[] constant(3)
  ROOT %less = pred[] compare(%c2, %three), direction=LT
}

ENTRY %e (p0: f32[8], p1: f32[8]) -> f32[8] {
  %p0 = f32[8] parameter(0)
  %p1 = f32[8] parameter(1)
  %x = f32[8] negate(%p0)
  %y = f32[8] negate(%p1)
  %z = f32[8] add(%x, %y)
  %zero = s32[] constant(0)
  %init = (f32[8], f32[8], s32[]) tuple(%x, %z, %zero)
  %w = (f32[8], f32[8], s32[]) while(%init), condition=%condition, body=%body
  %w1 = f32[8] get-tuple-element(%w), index=1
  ROOT %r = f32[8] add(%x, %w1)
}
"""
"""%x is passed through a loop that overwrites its place."""


def test_what_follows_a_loop_reads_what_the_loop_passed_on() -> None:
    module, _ = assign(LOOP, max_size_in_bytes=64)
    assert module["x"].shape.layout.memory_space == 1
    late = module.entry.root.operands[0]
    assert late.opcode is Opcode.GET_TUPLE_ELEMENT  # %x is overwritten in the loop
    assert late.operands[0] is module["w"]


def test_layouts_that_differ_before_layout_assignment_are_no_bitcasts() -> None:
    text = LOOP.replace("f32[8]", "f32[2,4]")
    text = text.replace("%x = f32[2,4] negate", "%x = f32[2,4]{0,1} negate")
    module, _ = assign(text, max_size_in_bytes=64)
    assert module.entry.root.operands[0].operands[0] is module["w"]  # rewired
    assert list(module.instructions(Opcode.BITCAST)) == []
    settings = RunSettings(seeds=1)
    assert Reference(parse_module(text), settings).compare(module, "bits") is None


SHARED_STATE = """HloModule m
%same (s: (f32[8], pred[])) -> (f32[8], pred[]) {
  ROOT %s = (f32[8], pred[]) parameter(0)
}
%body (b: (f32[8], pred[])) -> (f32[8], pred[]) {
  ROOT %b = (f32[8], pred[]) parameter(0)
  %read = (f32[8], pred[]) call(%b), to_apply=%same
}
%condition (c: (f32[8], pred[])) -> pred[] {
  %c = (f32[8], pred[]) parameter(0)
  ROOT %more = pred[] get-tuple-element(%c), index=1
}
ENTRY %e (x: f32[8], more: pred[]) -> (f32[8], pred[]) {
  %x = f32[8] parameter(0)
  %m = pred[] parameter(1)
  %init = (f32[8], pred[]) tuple(%x, %m)
  ROOT %loop = (f32[8], pred[]) while(%init), condition=%condition, body=%body
}
"""


def test_a_reader_of_the_state_that_is_the_root_does_not_see_the_new_element() -> None:
    module = parse_module(SHARED_STATE)
    pass_through(module["loop"], module["x"])
    assert verify_module(module, ANY_TARGET) == []
    assert len(module["read"].operands[0].shape.elements) == 2
    assert len(module["loop"].called[0].root.shape.elements) == 3
