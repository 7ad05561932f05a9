"""HLL101: collectives whose groups have one device each."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.checks.subject import Subject
from hloopt.cost_models import CostModelChoice
from hloopt.pass_framework.base import PassContext
from hloopt.passes.collectives.all_reduce_simplifier import AllReduceSimplifier
from hloopt.text import parse_module

SUM = """
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
"""
ALONE = "replica_groups={{0},{1},{2},{3}}"
GLOBAL = "channel_id=1, use_global_device_ids=true"


def module(body: str, header: str = "num_partitions=4") -> str:
    return f"HloModule m, {header}\n{SUM}\nENTRY e {{\n  p = f32[8] parameter(0)\n  {body}\n}}"


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        (f"f32[8] all-reduce(p), {ALONE}, {GLOBAL}, to_apply=sum", "groups of one device"),
        (f"f32[8] all-gather(p), {ALONE}, {GLOBAL}, dimensions={{0}}", "groups of one device"),
        (f"f32[8] all-gather(p), replica_groups=[4,1]<=[4], {GLOBAL}, dimensions={{0}}", "groups"),
        (
            f"f32[8] reduce-scatter(p), {ALONE}, {GLOBAL}, dimensions={{0}}, to_apply=sum",
            "groups of one device each",
        ),
        (f"f32[8] all-to-all(p), {ALONE}, channel_id=1, dimensions={{0}}", "groups of one device"),
        (f"f32[8] collective-broadcast(p), {ALONE}, channel_id=1", "groups of one device each"),
        (
            "f32[8] collective-permute(p), source_target_pairs={{0,0},{2,2}}, channel_id=1",
            "source-target pairs of one device each",
        ),
        (
            "f32[8] collective-permute(p), source_target_pairs={}, channel_id=1",
            "no source-target pairs",
        ),
    ],
)
def test_no_device_sends_anything(instruction: str, reason: str) -> None:
    (found,) = violations("HLL101", module(f"ROOT x = {instruction}"))
    assert reason in found.message
    assert found.message.startswith("%x has ")
    assert "no device sends anything" in found.message


@pytest.mark.parametrize(
    "instruction",
    [
        f"f32[8] all-reduce(p), replica_groups={{{{0,1}},{{2,3}}}}, {GLOBAL}, to_apply=sum",
        f"f32[8] all-reduce(p), replica_groups={{{{0}},{{1}},{{2,3}}}}, {GLOBAL}, to_apply=sum",
        # one replica, but all its partitions
        "f32[8] all-reduce(p), replica_groups={{0}}, channel_id=1, to_apply=sum",
        "f32[8] collective-permute(p), source_target_pairs={{0,0},{1,2}}, channel_id=1",
        f"f32[0] all-reduce(z), replica_groups={{{{0,1,2,3}}}}, {GLOBAL}, to_apply=sum",
        "f32[8] copy(p)",
    ],
)
def test_some_device_sends_something(instruction: str) -> None:
    assert not found_names("HLL101", module(f"z = f32[0] constant({{}})\n  ROOT x = {instruction}"))


@pytest.mark.parametrize(
    "instruction",
    [
        "f32[8] all-reduce(p), replica_groups={}, to_apply=sum",
        "f32[8] all-reduce(p), replica_groups={{0}}, channel_id=1, to_apply=sum",
    ],
)
def test_all_devices_are_one_only_where_the_header_says_so(instruction: str) -> None:
    body = f"ROOT x = {instruction}"
    assert not found_names("HLL101", module(body, "is_scheduled=true"))
    assert found_names("HLL101", module(body, "replica_count=1")) == ["x"]
    assert found_names("HLL101", module(body, "num_partitions=1")) == ["x"]
    across = "channel_id" in instruction
    assert found_names("HLL101", module(body, "num_partitions=2")) == ([] if across else ["x"])


def test_forms_count_once() -> None:
    body = f"""start = f32[8] all-reduce-start(p), {ALONE}, {GLOBAL}, to_apply=sum
  done = f32[8] all-reduce-done(start)
  wrapped = ((f32[8]), f32[8]) all-to-all-start(done), {ALONE}, channel_id=2, dimensions={{0}}
  unwrapped = f32[8] all-to-all-done(wrapped)
  ROOT fused = f32[8] fusion(unwrapped), kind=kCustom, calls=inside"""
    inside = f"""inside {{
  q = f32[8] parameter(0)
  ROOT all = f32[8] all-gather(q), {ALONE}, {GLOBAL}, dimensions={{0}}
}}

ENTRY"""
    names = found_names("HLL101", module(body).replace("ENTRY", inside))
    assert sorted(names) == ["all", "all-to-all", "start"]


def test_what_the_entry_does_not_reach_does_not_run() -> None:
    text = module("ROOT x = f32[8] copy(p)") + (
        f"\nunused {{\n  q = f32[8] parameter(0)\n  ROOT y = f32[8] all-reduce(q), {ALONE}, "
        f"{GLOBAL}, to_apply=sum\n}}"
    )
    assert not found_names("HLL101", text)


def test_a_module_that_is_not_partitioned_has_no_verdict() -> None:
    text = module(
        'q = f32[8] custom-call(p), custom_call_target="Sharding", sharding={devices=[4]<=[4]}\n'
        f"  ROOT x = f32[8] all-reduce(q), {ALONE}, {GLOBAL}, to_apply=sum"
    )
    assert "not partitioned" in check("HLL101", text).reason


LOOP = f"""
HloModule m, is_scheduled=true, num_partitions=4
{SUM}
body {{
  state = (s32[], f32[1048576]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[1048576] get-tuple-element(state), index=1
  REDUCTION
  ROOT out = (s32[], f32[1048576]) tuple(next, y)
}}

condition {{
  state.1 = (s32[], f32[1048576]) parameter(0)
  i.1 = s32[] get-tuple-element(state.1), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(i.1, n), direction=LT
}}

work {{
  a.1 = f32[1048576] parameter(0)
  ROOT n.1 = f32[1048576] negate(a.1)
}}

ENTRY e {{
  p = f32[1048576] parameter(0)
  q = f32[1048576] fusion(p), kind=kLoop, calls=work
  zero = s32[] constant(0)
  init = (s32[], f32[1048576]) tuple(zero, q)
  loop = (s32[], f32[1048576]) while(init), condition=condition, body=body
  ROOT last = f32[1048576] get-tuple-element(loop), index=1
}}
"""
SYNCHRONOUS = f"y = f32[1048576] all-reduce(x), {ALONE}, {GLOBAL}, to_apply=sum"


def test_the_time_is_what_a_run_saves_without_it() -> None:
    text = LOOP.replace("REDUCTION", SYNCHRONOUS)
    (found,) = violations("HLL101", text)
    assert ", 5 runs" in found.message
    before, after = _makespan(text), _makespan(text, simplify=True)
    assert found.impact.seconds == pytest.approx(before - after, rel=1e-6)
    assert found.impact.seconds > 0
    assert found.impact.moved == 0


def test_the_time_of_one_that_is_wrapped_is_the_wait_for_its_start() -> None:
    wrapped = (
        f"s = ((f32[1048576]), f32[1048576]) all-to-all-start(x), {ALONE}, channel_id=1, "
        "dimensions={0}\n  y = f32[1048576] all-to-all-done(s)"
    )
    (found,) = violations("HLL101", LOOP.replace("REDUCTION", wrapped))
    assert found.impact.seconds > 0


def _makespan(text: str, *, simplify: bool = False) -> float:
    module = parse_module(text)
    if simplify:
        assert AllReduceSimplifier().run(module, PassContext())
    schedule = Subject("m.hlo", module, CostModelChoice(target="h100_sxm")).schedule
    return schedule.simulation.makespan * (schedule.unit.seconds or 0.0)
