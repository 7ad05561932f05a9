"""Corners of collective-pipeliner: what it must not move, and what it keeps of what it moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.passes.collectives.pipelined_loop import (
    ONE_LOOP,
    STORED,
    loop,
    pipelined,
    the_loops,
)
from tests.properties.consistency import assert_consistent

from conformance_lib.options import pass_options
from hloopt.diagnostics import HloError
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.frontend_attributes import set_frontend_attributes
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
@pytest.mark.parametrize(
    ("start", "step", "limit", "compared"),
    [(0, 1, 3, "LE"), (3, -1, 0, "GE"), (3, -1, -1, "GT"), (0, 1, 4, "NE"), (0, 1, 4, "LT")],
)
def test_each_way_to_count_to_four(
    direction: str, start: int, step: int, limit: int, compared: str
) -> None:
    text = loop(start=start, step=step, limit=limit, direction=compared)
    module, remarks = pipelined(
        text, pipelining_direction=direction, should_process=("all-reduce",)
    )
    assert [remark.split(":")[0] for remark in remarks] == ["applied %ar"]
    [pipelined_loop] = the_loops(module)
    assert len(pipelined_loop.shape.elements) > 3


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_a_loop_that_is_the_root_results_in_what_it_did(direction: str) -> None:
    """Not in what it carries besides: XLA's own pass changes the result here."""
    text = loop(entry="  ROOT w = {state} while(init), condition=condition, body=body")
    module, _ = pipelined(text, pipelining_direction=direction, should_process=("all-reduce",))
    assert len(module.entry.root.shape.elements) == 3


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_counters_at_the_end_of_their_type(direction: str) -> None:
    text = loop(counter="u8", start=252, limit=255)
    options: dict[str, Any] = {"pipelining_direction": direction, "should_process": ("all-reduce",)}
    assert pipelined(text, **options)[1] == [
        "applied %ar: pipelined forward, level 0: a trip later in %w"
        if direction == "forward"
        else "applied %ar: pipelined backward: a trip earlier in %w"
    ]
    endless = parse_module(loop(counter="u8", start=252, limit=255, step=2))
    context = PassContext()
    assert not create_pass("collective-pipeliner").run(endless, context)
    assert [remark.reason for remark in context.remarks] == [
        "not pipelined: the trip count of %w is not proved: its counter does not reach the limit "
        "without overflow"
    ]


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


def test_a_second_round_moves_what_the_first_one_moved() -> None:
    body = """  ag = f32[2,8] all-gather(part), replica_groups={{0,1}}, dimensions={0}
  half = f32[1,8] slice(ag), slice={[1:2], [0:8]}
  ar = f32[1,8] all-reduce(half), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"""
    text = loop(body, header=", replica_count=2")
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


def test_channels() -> None:
    text = loop(STORED.replace("to_apply=sum", "to_apply=sum, channel_id=7"))
    for unique, expected in ((False, ["7", "7"]), (True, ["8", "9"])):
        module, _ = pipelined(text, unique_channel_id=unique)
        found = [i.attributes["channel_id"] for i in module.instructions(Opcode.ALL_REDUCE)]
        assert sorted(found) == expected


@pytest.mark.parametrize("direction", ["forward", "forward-sink"])
def test_dead_collectives_stay_behind_where_xla_leaves_them(direction: str) -> None:
    text = loop(STORED.replace("to_apply=sum", "to_apply=sum, channel_id=7"))
    for removes, dead in ((True, 0), (False, 1)):
        module, _ = pipelined(
            text,
            pipelining_direction=direction,
            remove_cross_partition_collective_ops=removes,
        )
        found = [i for i in module.instructions(Opcode.ALL_REDUCE) if not i.users]
        assert len(found) == dead
        assert all(i.name == "ar" and i.parent.name == "body" for i in found)


def test_a_pipelined_loop_comes_last_as_a_new_one_does() -> None:
    """Where XLA makes a new loop, so that passes behind it meet all in the same order."""
    entry = """  w = {state} while(init), condition=condition, body=body
  other = f32[4,8] negate(x0)
  x1 = f32[4,8] get-tuple-element(w), index=1
  ROOT r = f32[4,8] add(x1, other)"""
    module, _ = pipelined(loop(entry=entry))
    assert [*module.computations] == ["sum", "main", "body", "condition"]
    place = [i.name for i in module.entry.instructions].index
    assert place("w") > place("tuple") > place("other")


def test_the_first_trip_has_scheduling_groups_of_its_own() -> None:
    note = ', frontend_attributes={_scheduling_group_id="3"}'
    body = f"""  a = f32[1,8] negate(part){note}
  b = f32[1,8] abs(a){note}
  ar = f32[1,8] all-reduce(b), replica_groups={{}}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"""
    module, _ = pipelined(loop(body))
    groups = {
        computation: [
            i.attributes["frontend_attributes"]
            for i in module.computations[computation].instructions
            if i.opcode in (Opcode.NEGATE, Opcode.ABS)
        ]
        for computation in ("body", "main")
    }
    assert groups["body"] == ['{_scheduling_group_id="3"}'] * 2
    assert groups["main"] == ['{_scheduling_group_id="4"}'] * 2


def test_names_are_kept_or_new() -> None:
    kept, _ = pipelined(loop())
    assert {i.name for i in kept.instructions()} >= {"w", "p", "x", "next"}
    new, _ = pipelined(loop(), keep_names=False)
    names = {i.name for i in new.instructions()}
    assert names >= {"while", "q", "init"}
    assert not names & {"w", "p", "x", "next"}
    assert_consistent(new)


def test_a_limit_of_moves_per_loop() -> None:
    body = """  ar = f32[4,8] all-reduce(y), replica_groups={}, to_apply=sum
  br = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  wide = f32[4,8] dynamic-update-slice(ar, br, i, zero)
  stored = f32[4,8] add(x, wide)"""
    options: dict[str, Any] = {
        "pipelining_direction": "backward",
        "should_process": ("all-reduce",),
    }
    _, remarks = pipelined(loop(body), max_pipelining_per_loop=0, **options)
    assert sorted(remark.split(":")[0] for remark in remarks) == ["applied %ar", "missed %br"]
    _, remarks = pipelined(loop(body), **options)
    assert len([remark for remark in remarks if remark.startswith("applied")]) == 2


def test_hooks_see_what_was_moved() -> None:
    seen: list[str] = []
    options: dict[str, Any] = {
        "pipelining_direction": "backward",
        "should_process": lambda i: i.opcode is Opcode.ALL_REDUCE,
        "postprocess_backward_peeled_op": lambda i: set_frontend_attributes(i, {"at": "first"}),
        "postprocess_backward_rotated_op": lambda i: set_frontend_attributes(i, {"at": "next"}),
        "postprocess_backward_peeled_trailing_op": lambda i, w: seen.append(w.name),
        "postprocess_pipelined_ops": lambda i: seen.append(i.opcode.value),
        "postprocess_transformed_while_loop": lambda w: seen.append(f"loop {w.name}"),
    }
    module, _ = pipelined(loop(), **options)
    found = {i.parent.name: i.attributes for i in module.instructions(Opcode.ALL_REDUCE)}
    assert found["main"]["frontend_attributes"] == '{at="first"}'
    assert found["body"]["frontend_attributes"] == '{at="next"}'
    assert (seen[0], seen[-1], seen.count("all-reduce")) == ("w", "loop w", 2)


def test_a_schedule_is_kept_in_order() -> None:
    module, _ = pipelined(loop(header=", is_scheduled=true"))
    for computation in module.computations.values():
        done: set[Instruction] = set()
        for instruction in computation.instructions:
            assert done.issuperset(instruction.operands)
            done.add(instruction)


def test_an_inner_counter_is_projected() -> None:
    """What needs the counter after an inner loop does not wait for that loop."""
    text = """HloModule m

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
    for start, limit in ((0, 10), (-7, 10), (20, 10), (10, 10), (-4, -1)):
        module, _ = pipelined(
            text.replace("START", str(start)).replace("LIMIT", str(limit)),
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


@pytest.mark.slow
def test_the_modules_of_the_table_stay_the_same(shared: Path) -> None:
    """On 1, 2, 4 and 8 devices, as far as groups and shapes allow."""
    table = shared / "conformance" / "collective_pipeliner.jsonl"
    runs = 0
    for record in map(json.loads, table.read_text(encoding="utf-8").splitlines()):
        if "api" in record["options"]:
            continue
        options = pass_options(record["pass"], record["options"], record["config"])
        for counts in ((1, 1), (2, 1), (2, 2), (4, 2), (1, 8)):
            settings = RunSettings(seeds=3, counts=counts, memory=1 << 22)
            module = parse_module(record["hlo"])
            create_pass(record["pass"], options).run(module, PassContext())
            try:
                found = Reference(parse_module(record["hlo"]), settings).compare(module)
            except HloError:  # groups, shapes or a host that these devices have not, or large
                continue
            assert found is None, (record["id"], counts, found.reason)
            runs += 1
    assert runs > 200
