"""Layouts, shardings and conditions of loops that `host-offload-legalize` has to mind."""

from __future__ import annotations

import pytest
from tests.memory_space.legalization.programs import PASS
from tests.passes.checked_run import run_checked, run_equal

from hloopt.ir import Module, Opcode
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

WRITTEN = """HloModule m

ENTRY e {
  b = f32[4,6,2]{2,1,0SPACE} parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  u = f32[6,2]{0,1} parameter(2)
  h = f32[4,6,2]{2,1,0SPACE} custom-call(b), custom_call_target="MoveToHost"
  c = f32[4,6,2]{0,2,1SPACE} copy(h)
  um = f32[6,2]{1,0SPACE} custom-call(u), custom_call_target="MoveToHost"
  ub = f32[1,6,2]{0,2,1SPACE} bitcast(um)
  d = f32[4,6,2]{0,2,1SPACE} dynamic-update-slice(c, ub, i, z, z)
  ROOT back = f32[4,6,2]{0,2,1} custom-call(d), custom_call_target="MoveToDevice"
}
"""
"""An update in another layout than that in which it is moved to the host."""
SHARDED = """HloModule m, num_partitions=2

ENTRY e {
  p = f32[4,8]{1,0} parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  h = f32[4,8]{1,0} custom-call(p), custom_call_target="MoveToHost"
  c = f32[4,8]{0,1} copy(h), sharding={devices=[1,2]<=[2]}
  u = f32[8]{0} parameter(2)
  um = f32[8]{0} custom-call(u), custom_call_target="MoveToHost", sharding={devices=[2]<=[2]}
  ur = f32[1,8]{0,1} reshape(um)
  d = f32[4,8]{0,1} dynamic-update-slice(c, ur, i, z), sharding={devices=[1,2]<=[2]}
  s = f32[1,8]{0,1} dynamic-slice(d, i, z), dynamic_slice_sizes={1,8}
  sr = f32[8]{0} reshape(s)
  back = f32[8]{0} custom-call(sr), custom_call_target="MoveToDevice", sharding={devices=[2]<=[2]}
  ROOT n = f32[8]{0} negate(back)
}
"""
CONDITION = """HloModule m, entry_computation_layout={(pred[]{:S(5)}, s32[])->s32[]}

body {
  s = (pred[], s32[]) parameter(0)
  g = pred[] get-tuple-element(s), index=0
  h = s32[] get-tuple-element(s), index=1
  f = pred[] constant(false)
  ROOT t = (pred[], s32[]) tuple(f, h)
}

cond {
  s = (pred[], s32[]) parameter(0)
  ROOT g = pred[] get-tuple-element(s), index=0
}

ENTRY e {
  p = pred[] parameter(0)
  q = s32[] parameter(1)
  t = (pred[], s32[]) tuple(p, q)
  w = (pred[], s32[]) while(t), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(w), index=1
}
"""


def _calls(module: Module, target: str) -> list[Instruction]:
    calls = module.instructions(Opcode.CUSTOM_CALL)
    return [call for call in calls if custom_call_target(call) == target]


@pytest.mark.parametrize("space", ["", ":S(5)"])
def test_a_bitcast_of_an_update_is_of_its_layout_on_the_device(space: str) -> None:
    module = run_equal(PASS, WRITTEN.replace("b = f32[4,6,2]{2,1,0SPACE}", "b = f32[4,6,2]{2,1,0}")
                       .replace("SPACE", space))  # fmt: skip
    (bitcast,) = module.instructions(Opcode.BITCAST)
    (copy,) = (each for each in bitcast.operands if each.opcode is Opcode.COPY)
    assert copy.shape.layout.minor_to_major == (1, 0)
    assert HOST_MEMORY_SPACE not in (
        bitcast.shape.layout.memory_space,
        copy.shape.layout.memory_space,
    )


def test_calls_have_the_shardings_of_what_they_move() -> None:
    module = run_checked(PASS, SHARDED)
    ranks = {
        call.name: (call.shape.rank, call.attributes.get("sharding"))
        for target in ("MoveToHost", "MoveToDevice")
        for call in _calls(module, target)
    }
    assert (1, "{devices=[2]<=[2]}") not in ranks.values(), "each moves two dimensions"
    (negate,) = module.instructions(Opcode.NEGATE)
    assert negate.operands[0].attributes.get("sharding") == "{devices=[2]<=[2]}"


def test_a_condition_that_returns_a_value_in_host_memory_has_it() -> None:
    module = parse_module(CONDITION)
    assert not create_pass(PASS).run(module, PassContext(PASS))
