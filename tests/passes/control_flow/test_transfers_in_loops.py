"""Loops that carry sends and recvs in flight from trip to trip."""

from __future__ import annotations

import pytest
from tests.properties.consistency import assert_consistent

from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

CONTEXT = "(f32[2], u32[], token[])"
FLAT = "(f32[2]{0}, u32[], token[])"
PAIRS = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}"
PASSES = ("simplify-while-loops", "tuple-simplifier", "algsimp")

LOOP = f"""HloModule m, num_partitions=2

body {{
  p = (({CONTEXT}, f32[2]), s32[], f32[2]) parameter(0)
  u = ({CONTEXT}, f32[2]) get-tuple-element(p), index=0
  v = {CONTEXT} get-tuple-element(u), index=0
  w = f32[2] get-tuple-element(u), index=1
  i = s32[] get-tuple-element(p), index=1
  x = f32[2] get-tuple-element(p), index=2
  d = (f32[2], token[]) recv-done(v), channel_id=1
  y = f32[2] get-tuple-element(d), index=0
  k = token[] after-all()
  r = {CONTEXT} recv(k), channel_id=1, {PAIRS}
  t = ({CONTEXT}, f32[2]) tuple(r, y)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  f = f32[2] add(x, w)
  ROOT o = (({CONTEXT}, f32[2]), s32[], f32[2]) tuple(t, n, f)
}}

condition {{
  q = (({CONTEXT}, f32[2]), s32[], f32[2]) parameter(0)
  j = s32[] get-tuple-element(q), index=1
  n = s32[] constant(9)
  ROOT c = pred[] compare(j, n), direction=LT
}}

ENTRY e {{
  b = f32[2] parameter(0)
  k = token[] after-all()
  r = {CONTEXT} recv(k), channel_id=1, {PAIRS}
  t = ({CONTEXT}, f32[2]) tuple(r, b)
  zero = s32[] constant(0)
  s = (({CONTEXT}, f32[2]), s32[], f32[2]) tuple(t, zero, b)
  l = (({CONTEXT}, f32[2]), s32[], f32[2]) while(s), condition=condition, body=body
  u = ({CONTEXT}, f32[2]) get-tuple-element(l), index=0
  v = {CONTEXT} get-tuple-element(u), index=0
  d = (f32[2], token[]) recv-done(v), channel_id=1
  ROOT y = f32[2] get-tuple-element(d), index=0
}}
"""


def run(name: str, module: Module) -> bool:
    """Whether a pass changed a module, which is valid after it."""
    changed = create_pass(name).run(module, PassContext())
    assert verify_module(module) == []
    assert_consistent(module)
    return changed


def state_of(module: Module) -> str:
    (loop,) = module.instructions(Opcode.WHILE)
    return loop.shape.text


def test_what_is_in_flight_stays_one_element_and_the_rest_becomes_flat() -> None:
    module = parse_module(LOOP)
    assert run("simplify-while-loops", module)
    assert state_of(module) == f"({FLAT}, f32[2]{{0}}, s32[], f32[2]{{0}})"


@pytest.mark.parametrize("passes", [PASSES, PASSES[:2], PASSES[::2]])
def test_no_pass_takes_apart_what_is_in_flight(passes: tuple[str, ...]) -> None:
    module = parse_module(LOOP)
    while sum(run(name, module) for name in passes):
        pass
    assert state_of(module) == f"({FLAT}, s32[])"
    recvs = [*module.instructions(Opcode.RECV)]
    assert [len(recv.users) for recv in recvs] == [1, 1]


@pytest.mark.parametrize(
    "context",
    [
        "(f32[2], s32[], token[])",
        "(f32[2], u32[2], token[])",
        "(f32[2], u32[], f32[])",
        "(f32[2], token[])",
    ],
)
def test_tuples_that_no_send_or_recv_gives_become_flat(context: str) -> None:
    state = f"({context}, s32[])"
    module = parse_module(
        f"HloModule m\nbody {{ ROOT p = {state} parameter(0) }}\n"
        f"condition {{ q = {state} parameter(0) ROOT c = pred[] constant(true) }}\n"
        f"ENTRY e {{ s = {state} parameter(0)\n"
        f"ROOT w = {state} while(s), condition=condition, body=body }}"
    )
    assert run("simplify-while-loops", module)
    assert state_of(module).count("(") == 1


TWICE = f"""HloModule m, num_partitions=2

body {{
  p = ({CONTEXT}, f32[2], f32[2]) parameter(0)
  v = {CONTEXT} get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  y = f32[2] get-tuple-element(p), index=2
  d = (f32[2], token[]) recv-done(v), channel_id=1
  k = token[] after-all()
  r = {CONTEXT} recv(k), channel_id=1, {PAIRS}
  ROOT o = ({CONTEXT}, f32[2], f32[2]) tuple(r, x, y)
  z = f32[2] get-tuple-element(o), index=1
  e = () custom-call(z), custom_call_target="f", custom_call_has_side_effect=true
}}

condition {{
  q = ({CONTEXT}, f32[2], f32[2]) parameter(0)
  ROOT c = pred[] constant(true)
}}

ENTRY e {{
  b = f32[2] parameter(0)
  k = token[] after-all()
  r = {CONTEXT} recv(k), channel_id=1, {PAIRS}
  s = ({CONTEXT}, f32[2], f32[2]) tuple(r, b, b)
  l = ({CONTEXT}, f32[2], f32[2]) while(s), condition=condition, body=body
  v = {CONTEXT} get-tuple-element(l), index=0
  d = (f32[2], token[]) recv-done(v), channel_id=1
  ROOT y = f32[2] get-tuple-element(s), index=1
}}
"""


def test_states_that_stay_beside_smaller_ones_are_the_only_consumers_of_a_recv() -> None:
    module = parse_module(TWICE)
    assert run("simplify-while-loops", module)
    assert state_of(module) == f"({FLAT}, f32[2]{{0}})"


TAKEN = f"""HloModule m, num_partitions=2

ENTRY e {{
  b = f32[2] parameter(0)
  k = token[] after-all()
  s = {CONTEXT} send(b, k), channel_id=1, {PAIRS}
  t = ({CONTEXT}) tuple(s)
  %s
}}
"""
GET = f"{CONTEXT} get-tuple-element(t), index=0"


@pytest.mark.parametrize("name", PASSES[1:])
@pytest.mark.parametrize(
    "use",
    [
        f"ROOT g = {GET}",
        f"g = {GET} ROOT x = f32[2] get-tuple-element(g), index=0",
        f"g = {GET} ROOT x = {CONTEXT} opt-barrier(g)",
        f"g = {GET} u = ({CONTEXT}) tuple(g) ROOT x = f32[2] get-tuple-element(g), index=0",
    ],
)
def test_only_its_done_and_tuples_take_what_is_in_flight(name: str, use: str) -> None:
    module = parse_module(TAKEN % use)
    assert verify_module(module) == []
    context = PassContext(name)
    create_pass(name).run(module, context)
    assert verify_module(module) == []
    assert "%s is in flight: only its done and tuples take it" in {
        remark.reason.removeprefix("element-of-tuple: ") for remark in context.remarks
    }


@pytest.mark.parametrize("name", PASSES[1:])
def test_a_done_takes_what_is_in_flight_past_tuples(name: str) -> None:
    through = f"g = {GET} u = ({CONTEXT}) tuple(g) w = {CONTEXT} get-tuple-element(u), index=0"
    module = parse_module(TAKEN % f"{through} ROOT d = token[] send-done(w), channel_id=1")
    assert run(name, module)
    assert module["d"].operands[0] is module["s"]


HELD = f"""HloModule m, num_partitions=2

ENTRY e {{
  b = f32[2] parameter(0)
  k = token[] after-all()
  s = {CONTEXT} send(b, k), channel_id=1, {PAIRS}
  t = ({CONTEXT}, f32[2]) tuple(s, b)
  g = {GET}
  d = token[] send-done(g), channel_id=1
  %s
}}
"""


@pytest.mark.parametrize("name", PASSES[1:])
@pytest.mark.parametrize(
    "use",
    [
        f"ROOT o = ({CONTEXT}, f32[2]) opt-barrier(t)",
        "x = f32[2] get-tuple-element(t), index=1, control-predecessors={d} "
        "ROOT n = f32[2] negate(x)",
        f"ROOT n = (({CONTEXT}, f32[2])) tuple(t)",
    ],
)
def test_what_is_in_flight_stays_in_a_tuple_that_has_other_uses(name: str, use: str) -> None:
    module = parse_module(HELD % use)
    assert verify_module(module) == []
    context = PassContext(name)
    create_pass(name).run(module, context)
    assert verify_module(module) == []
    assert module["d"].operands[0] is module["g"]
    assert "%s is in flight: %t, which holds it, has other uses" in {
        remark.reason.removeprefix("element-of-tuple: ") for remark in context.remarks
    }


@pytest.mark.parametrize("name", PASSES[1:])
def test_other_reads_of_the_tuple_go_first(name: str) -> None:
    module = parse_module(HELD % "ROOT x = f32[2] get-tuple-element(t), index=1")
    assert run(name, module)
    assert module["d"].operands[0] is module["s"]
