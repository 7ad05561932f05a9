"""The collectives that are moved, in which round, and what the module looks like then."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.collectives.collective_pipeliner.loops import (
    ONE_LOOP,
    STORED,
    loop,
    pipelined,
    the_loops,
)
from tests.properties.consistency import assert_consistent

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


def test_what_the_loop_says_of_its_trips_goes_and_its_metadata_stays() -> None:
    config = 'metadata={{op_name="scan"}}, backend_config={{"known_trip_count":{{"n":"4"}}}}'
    module, _ = pipelined(loop(entry=ONE_LOOP.replace("body=body", f"body=body, {config}")))
    [pipelined_loop] = the_loops(module)
    assert dict(pipelined_loop.attributes) == {"metadata": '{op_name="scan"}'}


def test_two_loops_with_one_body_get_bodies_of_their_own() -> None:
    entry = """  w = {state} while(init), condition=condition, body=body
  x1 = f32[4,8] get-tuple-element(w), index=1
  again = {state} tuple(start, x1, x0)
  v = {state} while(again), condition=condition, body=body
  ROOT r = f32[4,8] get-tuple-element(v), index=1"""
    module, remarks = pipelined(loop(entry=entry))
    first, second = the_loops(module)
    assert not set(first.called) & set(second.called)
    assert len(remarks) == 2


def test_a_buffer_that_becomes_another_element_stays() -> None:
    _, remarks = pipelined(loop(ends="y, stored"), changes=False)
    assert remarks == [
        "missed %ar: not pipelined: %stored writes into element 1 of the state, but becomes "
        "element 2"
    ]


def test_what_is_stored_in_new_buffers_waits_for_the_last_trip() -> None:
    body = """  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  none = f32[] constant(2)
  new = f32[4,8] broadcast(none), dimensions={}
  stored = f32[4,8] dynamic-update-slice(new, ar, i, zero), frontend_attributes={always_sink="1"}"""
    module, _ = pipelined(loop(body), reuse_pipelined_op_buffer=True)
    [ar] = module.instructions(Opcode.ALL_REDUCE)
    assert ar.parent.is_entry
    options: dict[str, Any] = {"pipelining_direction": "forward-sink"}
    _, remarks = pipelined(loop(body), changes=False, **options)
    assert remarks == ["missed %ar: not pipelined: %new, the buffer, is new in every trip"]


def test_stores_of_later_rounds_that_overlap_stay() -> None:
    """Indices outside of the buffer are all moved to its last row."""
    body = f"""  neg = f32[1,8] negate(part)
{STORED.replace("(part)", "(neg)")}"""
    text = loop(body, start=3, limit=9)
    module = parse_module(text)
    reference = Reference(parse_module(text), RunSettings())
    first = create_pass("collective-pipeliner", {"last_run": False})
    assert first.run(module, PassContext())
    assert reference.compare(module) is None
    context = PassContext()
    options: dict[str, Any] = {
        "level_to_operate_on": 1,
        "reuse_pipelined_op_buffer": True,
        "last_run": False,
    }
    assert not create_pass("collective-pipeliner", options).run(module, context)
    assert "may overlap" in context.remarks[0].reason
    last = create_pass("collective-pipeliner", {"level_to_operate_on": 1})
    assert last.run(module, PassContext())  # removes the marks
    assert not list(module.instructions(Opcode.CUSTOM_CALL))
    assert reference.compare(module) is None


TWO_ROUNDS = """  ag = f32[2,8] all-gather(part), replica_groups={{0,1}}, dimensions={0}
  half = f32[1,8] slice(ag), slice={[1:2], [0:8]}
  ar = f32[1,8] all-reduce(half), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"""


def test_a_second_round_moves_what_the_first_one_moved() -> None:
    text = loop(TWO_ROUNDS, header=", replica_count=2")
    module = parse_module(text)
    reference = Reference(parse_module(text), RunSettings())
    for level, opcode in enumerate(("all-gather", "all-reduce")):
        context = PassContext()
        options: dict[str, Any] = {
            "level_to_operate_on": level,
            "should_process": (opcode,),
            "last_run": level == 1,
        }
        assert create_pass("collective-pipeliner", options).run(module, context)
        assert [remark.kind for remark in context.remarks] == ["applied"]
        assert reference.compare(module) is None


def test_a_run_at_level_0_does_not_move_what_another_one_moved() -> None:
    module = parse_module(loop(TWO_ROUNDS, header=", replica_count=2"))
    first = create_pass("collective-pipeliner", {"should_process": ("all-gather",)})
    assert first.run(module, PassContext())
    context = PassContext()
    second = create_pass("collective-pipeliner", {"should_process": ("all-reduce",)})
    assert not second.run(module, context)
    assert "does not follow from the loop counter" in context.remarks[0].reason


def test_nothing_runs_after_the_loop_for_a_result_that_nobody_reads() -> None:
    text = loop(
        STORED.replace("to_apply=sum", "to_apply=sum, channel_id=7"),
        entry=ONE_LOOP.replace("index=1", "index=2"),
    )
    module, _ = pipelined(text)
    [ar] = module.instructions(Opcode.ALL_REDUCE)
    assert not ar.parent.is_entry


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_a_loop_that_is_the_root_gives_what_it_gave(direction: str) -> None:
    text = loop(entry="  ROOT w = {state} while(init), condition=condition, body=body")
    module, _ = pipelined(text, pipelining_direction=direction, should_process=["all-reduce"])
    assert module.entry.root.opcode is Opcode.TUPLE


def test_a_pipelined_loop_comes_last_as_a_new_one_does() -> None:
    """XLA puts the loop it makes last; later passes then meet all in the same order."""
    entry = """  w = {state} while(init), condition=condition, body=body
  other = f32[4,8] negate(x0)
  x1 = f32[4,8] get-tuple-element(w), index=1
  ROOT r = f32[4,8] add(x1, other)"""
    module, _ = pipelined(loop(entry=entry))
    assert [*module.computations] == ["sum", "main", "body", "condition"]
    place = [i.name for i in module.entry.instructions].index
    assert place("w") > place("tuple") > place("other")


def test_names_are_kept_or_new() -> None:
    kept, _ = pipelined(loop())
    assert {i.name for i in kept.instructions()} >= {"w", "p", "x", "next"}
    new, _ = pipelined(loop(), keep_names=False)
    names = {i.name for i in new.instructions()}
    assert names >= {"while", "q", "init"}
    assert not names & {"w", "p", "x", "next"}
    assert_consistent(new)


def test_a_schedule_is_kept_in_order() -> None:
    module, _ = pipelined(loop(header=", is_scheduled=true"))
    for computation in module.computations.values():
        done: set[Instruction] = set()
        for instruction in computation.instructions:
            assert done.issuperset(instruction.operands)
            done.add(instruction)


INNER_LOOP = """HloModule m

inner_body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  three = s32[] constant(3)
  j = s32[] add(i, three)
  y = f32[8] add(x, x)
  ROOT r = (s32[], f32[8]) tuple(j, y)
}

inner_condition {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(LIMIT)
  ROOT l = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], s32[], f32[8], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] get-tuple-element(p), index=1
  x = f32[8] get-tuple-element(p), index=2
  source = f32[64] get-tuple-element(p), index=3
  part = f32[8] dynamic-slice(source, k), dynamic_slice_sizes={8}
  copied = f32[8] collective-permute(part), source_target_pairs={{0,0}}
  state = (s32[], f32[8]) tuple(k, copied)
  w = (s32[], f32[8]) while(state), condition=inner_condition, body=inner_body
  after = s32[] get-tuple-element(w), index=0
  made = f32[8] get-tuple-element(w), index=1
  new = f32[8] add(x, made)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], s32[], f32[8], f32[64]) tuple(j, after, new, source)
}

condition {
  p = (s32[], s32[], f32[8], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  k0 = s32[] constant(START)
  x0 = f32[8] parameter(0)
  s0 = f32[64] parameter(1)
  t = (s32[], s32[], f32[8], f32[64]) tuple(zero, k0, x0, s0)
  ROOT v = (s32[], s32[], f32[8], f32[64]) while(t), condition=condition, body=body
}
"""


def test_an_inner_counter_is_projected() -> None:
    """An inner counter's value after its loop is computed without waiting for the loop."""
    for start, limit in ((0, 10), (-7, 10), (20, 10), (10, 10), (-4, -1)):
        module, _ = pipelined(
            INNER_LOOP.replace("START", str(start)).replace("LIMIT", str(limit)),
            pipelining_direction="backward",
            should_process=("collective-permute",),
        )
        [inner] = [w for w in the_loops(module) if not w.parent.is_entry]
        [permute] = [i for i in inner.parent.instructions if i.opcode is Opcode.COLLECTIVE_PERMUTE]
        waiting, before = [permute], set[Instruction]()
        while waiting:
            before.update(waiting)
            waiting = [o for i in waiting for o in i.operands if o not in before]
        assert inner not in before
