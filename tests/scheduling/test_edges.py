"""Edges of the schedule graph beside operands and control dependencies."""

from __future__ import annotations

import pytest
from tests.scheduling.programs import scheduled

from hloopt.analysis.dataflow import Dataflow
from hloopt.diagnostics import PassRefused
from hloopt.ir import Instruction
from hloopt.memory.buffers import Buffers
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.scheduling.graph.edges import BufferHazards, TransferLoops
from hloopt.text import parse_module

PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'
CALLEES = """sum { sum.a = f32[] parameter(0) sum.b = f32[] parameter(1)
  ROOT sum.c = f32[] add(sum.a, sum.b) }
body {
  body.t = (s32[], f32[8]) parameter(0)
  body.i = s32[] get-tuple-element(body.t), index=0
  body.x = f32[8] get-tuple-element(body.t), index=1
  body.one = s32[] constant(1)
  body.j = s32[] add(body.i, body.one)
  ROOT body.next = (s32[], f32[8]) tuple(body.j, body.x)
}
condition {
  c.t = (s32[], f32[8]) parameter(0)
  c.now = s32[] get-tuple-element(c.t), index=0
  c.n = s32[] constant(3)
  ROOT c.less = pred[] compare(c.now, c.n), direction=LT
}
"""


def hazards_of(body: str) -> tuple[BufferHazards, list[Instruction]]:
    module = parse_module(scheduled(body, CALLEES))
    flow = Dataflow.of(module)
    return BufferHazards(flow, Buffers.of(flow)), list(module.entry.instructions)


def test_paths_are_found_once() -> None:
    hazards, instructions = hazards_of("ROOT p = f32[8] parameter(0)")
    computation = instructions[0].parent
    assert hazards.reachability(computation) is hazards.reachability(computation)


def buffer_edges(body: str) -> list[str]:
    """The edges of all dones, in their order: which reader comes before which start."""
    hazards, instructions = hazards_of(body)
    found: list[tuple[Instruction, Instruction]] = []
    for instruction in instructions:
        if instruction.opcode.endswith("-done"):
            found += list(hazards.edges(instruction, found))
    return [f"{earlier.name} {later.name}" for earlier, later in found]


ARRAYS = """
  p = f32[8] parameter(0)
  a = f32[8] negate(p)"""


@pytest.mark.parametrize(
    ("rest", "edges"),
    [
        ("b = f32[8] sine(a)", ["b s"]),
        ("b = f32[8] sine(a)\nc = f32[8] cosine(a)", ["b s", "c s"]),
        ("b = f32[8] sine(p)", []),
        ("b = f32[8] sine(d)", []),
        ("b = f32[8] add(a, d)", []),  # it needs the result, so it reads a copy or comes after
    ],
)
def test_readers_of_what_is_overwritten_come_before_the_start(rest: str, edges: list[str]) -> None:
    body = f"""{ARRAYS}
  s = f32[8] all-reduce-start(a), to_apply=sum
  d = f32[8] all-reduce-done(s)
  {rest}
  ROOT r = f32[8] negate(d)"""
    assert buffer_edges(body) == edges


def test_what_a_start_leads_to_cannot_come_before_it() -> None:
    body = f"""{ARRAYS}
  s = f32[8] all-reduce-start(a), to_apply=sum
  b = f32[8] sine(a), control-predecessors={{s}}
  d = f32[8] all-reduce-done(s)
  ROOT r = f32[8] add(b, d)"""
    assert buffer_edges(body) == []


def test_results_that_come_back_as_parameters_may_be_read_before_the_start() -> None:
    module = parse_module(
        scheduled(
            """
  p = f32[8] parameter(0)
  once = f32[8] call(p), to_apply=step
  ROOT twice = f32[8] call(once), to_apply=step""",
            """step {
  step.p = f32[8] parameter(0)
  step.b = f32[8] sine(step.p)
  step.x = f32[8] constant({...})
  step.s = (f32[8], f32[8]) collective-permute-start(step.x), source_target_pairs={{0,1}}
  ROOT step.d = f32[8] collective-permute-done(step.s), control-predecessors={step.b}
}
""",
        )
    )
    flow = Dataflow.of(module)
    done = module.computations["step"].root
    hazards = BufferHazards(flow, Buffers.of(flow))
    edges = [(reader.name, start.name) for reader, start in hazards.edges(done, [])]
    assert edges == [("step.b", "step.s")]


def test_edges_that_were_added_lead_on() -> None:
    """%b is before %s by an edge of its own, so what %b needs cannot come after %s."""
    body = f"""{ARRAYS}
  e = f32[8] exponential(p)
  s = f32[8] all-reduce-start(a), to_apply=sum
  t = f32[8] all-reduce-start(e), to_apply=sum
  x = f32[8] sine(a), control-predecessors={{t}}
  y = f32[8] sine(e), control-predecessors={{s}}
  d = f32[8] all-reduce-done(s)
  f = f32[8] all-reduce-done(t)
  ROOT r = (f32[8], f32[8], f32[8], f32[8]) tuple(x, y, d, f)"""
    assert buffer_edges(body) == ["x s"]


def test_edges_may_lead_on_through_several() -> None:
    lines = [
        f"v{n} = f32[8] negate(p)\nt{n} = f32[8] all-reduce-start(v{n}), to_apply=sum"
        for n in range(3)
    ]
    reads = [f"x{n} = f32[8] sine(v{n}), control-predecessors={{t{(n + 1) % 3}}}" for n in range(3)]
    dones = [f"d{n} = f32[8] all-reduce-done(t{n})" for n in range(3)]
    root = "ROOT r = (f32[8], f32[8], f32[8], f32[8], f32[8], f32[8]) tuple(x0, x1, x2, d0, d1, d2)"
    body = "\n".join(["p = f32[8] parameter(0)", *lines, *reads, *dones, root])
    assert buffer_edges(body) == ["x0 t0", "x1 t1"]


def test_tokens_are_not_read() -> None:
    body = """k = token[] after-all()
  b = (token[], token[]) tuple(k, k)
  r0 = (f32[8], u32[], token[]) recv(k), channel_id=1
  r1 = (f32[8], token[]) recv-done(r0), channel_id=1
  ROOT v = f32[8] get-tuple-element(r1), index=0"""
    assert buffer_edges(body) == []


# -- transfers and loops ---------------------------------------------------------------------------

RECEIVED = f"""
  k = token[] after-all()
  zero = s32[] constant(0)
  p = f32[8] parameter(0)
  recv = (f32[8], u32[], token[]) recv(k), channel_id=1, {PAIRS}
  got = (f32[8], token[]) recv-done(recv), channel_id=1
  v = f32[8] get-tuple-element(got), index=0
  before.i = (s32[], f32[8]) tuple(zero, p)
  before = (s32[], f32[8]) while(before.i), condition=condition, body=body
  after.i = (s32[], f32[8]) tuple(zero, v)
  after = (s32[], f32[8]) while(after.i), condition=condition, body=body
  last = (s32[], f32[8]) while(after), condition=condition, body=body
  o = f32[8] get-tuple-element(last), index=1
  """
SEND = f"send = (f32[8], u32[], token[]) send(p, k), channel_id=2, {PAIRS}"


def loop_edges(rest: str, *, top_down: bool) -> list[str]:
    hazards, instructions = hazards_of(f"{RECEIVED}{rest}\n  ROOT r = f32[8] negate(o)")
    loops = TransferLoops(hazards, instructions)
    return [
        f"{earlier.name} {later.name}"
        for instruction in instructions
        for earlier, later in loops.edges(instruction, top_down=top_down)
    ]


@pytest.mark.parametrize(
    ("control", "edges"),
    [
        (", control-predecessors={got}", ["sent after"]),
        ("", []),
        (", control-predecessors={recv}", []),
        (", control-predecessors={v, got}", ["sent after"]),
    ],
)
def test_a_send_done_ends_before_the_first_loop_after_what_it_waited_for(
    control: str, edges: list[str]
) -> None:
    """The loop before the receive does not count, nor one that another loop is before."""
    rest = f"{SEND}\n  sent = token[] send-done(send), channel_id=2{control}"
    for top_down in (False, True):
        assert loop_edges(rest, top_down=top_down) == edges


def test_top_down_a_receive_after_a_send_done_begins_after_the_loops_before_that() -> None:
    rest = f"""sender = (f32[8], u32[], token[]) send(o, k), channel_id=2, {PAIRS}
  sent = token[] send-done(sender), channel_id=2
  recv.2 = (f32[8], u32[], token[]) recv(k), channel_id=3, {PAIRS}
  got.2 = (f32[8], token[]) recv-done(recv.2), channel_id=3, control-predecessors={{sent}}
  other = f32[8] sine(p), control-predecessors={{sent}}"""
    assert loop_edges(rest, top_down=True) == ["after recv.2", "last recv.2"]
    assert loop_edges(rest, top_down=False) == []


def test_a_cycle_of_transfers_and_loops_is_refused_with_the_loop() -> None:
    rest = f"""sender = (f32[8], u32[], token[]) send(o, k), channel_id=2, {PAIRS}
  sent = token[] send-done(sender), channel_id=2, control-predecessors={{got}}"""
    text = scheduled(f"{RECEIVED}{rest}\n  ROOT r = f32[8] negate(o)", CALLEES)
    created = create_pass("latency-hiding-scheduler", {"schedule_send_recvs": True})
    with pytest.raises(PassRefused, match="'%after' cannot be scheduled"):
        created.run(parse_module(text), PassContext())
