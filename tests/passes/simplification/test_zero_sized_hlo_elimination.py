"""Corners of replacing arrays without elements."""

from __future__ import annotations

from functools import partial

from tests.passes.checked_run import run_checked

from hloopt.ir import Opcode

eliminate = partial(run_checked, "zero-sized-hlo-elimination")


def test_both_ends_of_an_asynchronous_operation_go() -> None:
    module = eliminate("""HloModule m
f { x = f32[0] parameter(0) ROOT n = f32[0] negate(x) }
ENTRY e {
  p = f32[0] parameter(0)
  s = ((f32[0]), f32[0], s32[]) async-start(p), calls=f
  ROOT d = f32[0] async-done(s)
}""")
    assert [i.opcode for i in module.entry.instructions] == [Opcode.PARAMETER, Opcode.CONSTANT]


def test_collectives_with_a_channel_stay() -> None:
    module = eliminate("""HloModule m
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }
ENTRY e {
  p = f32[0] parameter(0)
  a = f32[0] all-reduce(p), to_apply=add, channel_id=1, replica_groups={}
  b = f32[0] all-reduce(p), to_apply=add, replica_groups={}
  ROOT t = (f32[0], f32[0]) tuple(a, b)
}""")
    assert [o.opcode for o in module.entry.root.operands] == [Opcode.ALL_REDUCE, Opcode.CONSTANT]


def test_the_result_of_a_callee_is_a_constant() -> None:
    module = eliminate("""HloModule m
f { x = f32[0,2] parameter(0) ROOT n = f32[0,2] negate(x) }
ENTRY e {
  p = f32[0,2] parameter(0)
  c = f32[0,2] call(p), to_apply=f
  ROOT t = (f32[0,2]) tuple(c)
}""")
    assert module.computations["f"].root.opcode is Opcode.CONSTANT
    assert module.entry.root.operands[0].payload == "{  }"


def test_an_asynchronous_operation_whose_start_has_to_stay_stays_whole() -> None:
    module = eliminate("""HloModule m
f { x = f32[0] parameter(0) ROOT n = f32[0] negate(x) }
ENTRY e {
  p = f32[0] parameter(0)
  q = f32[] parameter(1)
  first = f32[] negate(q)
  s = ((f32[0]), f32[0], s32[]) async-start(p), calls=f, control-predecessors={first}
  d = f32[0] async-done(s)
  cs = (f32[0], f32[0], u32[]) copy-start(p), control-predecessors={first}
  cd = f32[0] copy-done(cs)
  ROOT t = (f32[0], f32[0]) tuple(d, cd)
}""")
    assert [o.opcode for o in module.entry.root.operands] == [Opcode.ASYNC_DONE, Opcode.COPY_DONE]
