"""The decisions that are proposed for a program, and what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import FAMILIES, Family, OverlapOptions
from hloopt.passes.overlap.proposals import ALGORITHMS, proposals
from hloopt.text import parse_module

A = "f32[512,512]{1,0}"
GROUPS = "replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add"
COMBINED = f"""
HloModule m, num_partitions=2

add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}

ENTRY main {{
  x = {A} parameter(0)
  y = {A} parameter(1)
  both = ({A}, {A}) all-reduce(x, y), channel_id=1, {GROUPS}
  first = {A} get-tuple-element(both), index=0
  second = {A} get-tuple-element(both), index=1
  product = {A} dot(first, second), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT sum = {A} all-reduce(product), channel_id=2, {GROUPS}
}}
"""


@pytest.fixture(scope="module")
def layers(root: Path) -> str:
    path = root / "tests/golden/passes/overlap-search/example.hlo"
    return path.read_text(encoding="utf-8")


def judged(text: str) -> Judged:
    return Judge(OverlapOptions(target="h100_sxm")).finish(Draft(parse_module(text)))


def proposed(text: str, *families: Family) -> list[Decision]:
    """The decisions that are proposed alone, of some kinds."""
    return [decision for (decision,) in proposals(judged(text), families or FAMILIES)]


def test_loops_with_collectives_may_make_two_trips_in_one(layers: str) -> None:
    (decision,) = proposed(layers, "unroll")
    assert decision.what == "make two trips of %layers in one"


def test_loops_without_collectives_stay(layers: str) -> None:
    start, _, rest = layers.partition("ENTRY main {")
    for number, name in enumerate(("up", "down"), 1):
        gather = f"all-gather({name}_shard), channel_id={number}, replica_groups={{{{0,1}}}}"
        assert gather in start
        start = start.replace(gather, f"concatenate({name}_shard, {name}_shard)")
    start = start.replace(", use_global_device_ids=true", "")
    assert proposed(f"{start}ENTRY main {{{rest}") == []


def test_combined_collectives_may_be_taken_apart_and_all_reduces_be_split() -> None:
    assert {decision.what for decision in proposed(COMBINED, "separate", "split")} == {
        "take %both apart",
        "make %both a reduce-scatter and an all-gather",
        "make %sum a reduce-scatter and an all-gather",
        "make 2 parts of %sum and what is beside it",
        "make 4 parts of %sum and what is beside it",
        "make 2 parts of %sum and what is beside it up to 1 dot away",
        "make 4 parts of %sum and what is beside it up to 1 dot away",
    }


def test_collectives_of_a_computation_are_made_parts_together_and_alone() -> None:
    reads, _, rest = COMBINED.partition("  second = ")
    reads = reads.replace(f"both = ({A}, {A}) all-reduce(x, y)", f"one = {A} all-reduce(x)")
    reads = reads.replace("get-tuple-element(both), index=0", "negate(one)")
    text = f"{reads}  second = {A} negate(y)\n{rest.partition(chr(10))[2]}"
    whats = [what for what in (d.what for d in proposed(text, "split")) if "parts" in what]
    assert [what.partition(" and ")[0] for what in whats[:2]] == [
        "make 2 parts of %sum, %one",
        "make 4 parts of %sum, %one",
    ]
    assert whats[0].endswith(" and what is beside them")
    assert [what.partition(" and ")[0] for what in whats[2::4]] == [
        "make 2 parts of %sum",
        "make 2 parts of %one",
    ]


def test_outside_of_loops_nothing_is_pipelined() -> None:
    assert proposed(COMBINED, "pipeline", "unroll") == []


def test_all_of_a_kind_are_pipelined_together_and_each_alone(layers: str) -> None:
    whats = [decision.what for decision in proposed(layers, "pipeline")]
    assert whats[0] == "pipeline %up, %down backward"
    assert {"pipeline %up backward", "pipeline %down backward"} <= {*whats[1:]}


def test_of_many_collectives_three_are_named(layers: str) -> None:
    start, _, rest = layers.partition("  next = ")
    more = "".join(
        f"  more{n} = f32[64,64]{{1,0}} all-gather(up_shard), channel_id={n}, "
        "replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true\n"
        f"  dot{n} = f32[64,64]{{1,0}} dot(narrow{'' if n == 3 else n - 1}, more{n}), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        for n in (3, 4)
    ).replace("narrow3", "dot3")
    rest = rest.replace("tuple(next, narrow,", "tuple(next, dot4,")
    first = proposed(f"{start}{more}  next = {rest}", "pipeline")[0]
    assert first.what.endswith(" and 1 more backward")


def test_what_a_program_waits_for_most_comes_first(layers: str) -> None:
    program = judged(layers)
    alone = [
        decision.options
        for (decision,) in proposals(program, ("pipeline",))
        if len(dict(decision.options)["names"]) == 1  # type: ignore[arg-type]  # a tuple
    ]
    longest = max(program.waits, key=lambda name: program.waits[name])
    assert dict(alone[0])["names"] == (longest,)


def test_each_decision_that_is_proposed_can_be_made_or_changes_nothing(layers: str) -> None:
    for text in (layers, COMBINED):
        program = judged(text)
        for change in proposals(program, FAMILIES):
            program.draft.after(*change)


def test_another_order_to_begin_with_is_proposed_until_one_is_chosen(layers: str) -> None:
    program = judged(layers)
    begun = list(proposals(program, ("order",)))
    assert [decision.what for (decision,) in begun] == [
        f"begin with the order of the memory scheduler {algorithm}" for algorithm in ALGORITHMS
    ]
    draft = program.draft.after(*begun[0])
    assert draft is not None
    program = Judge(OverlapOptions(target="h100_sxm")).finish(draft)
    assert list(proposals(program, ("order",))) == []
