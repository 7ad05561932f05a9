"""The instructions that a collective's operand is computed from, and what else reads them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.collectives.collective_pipeliner.loops import loop

from hloopt.passes.collectives.collective_pipeliner import CollectivePipeliner
from hloopt.passes.collectives.collective_pipeliner.chains import backward_chains
from hloopt.passes.collectives.collective_pipeliner.counted_loop import (
    CountedLoop,
    NotPipelined,
    counted_loop,
)
from hloopt.text import parse_module


def loop_of(body: str, **changes: Any) -> CountedLoop:
    (around,) = [i for i in parse_module(loop(body, **changes)).entry.instructions if i.name == "w"]
    return counted_loop(around)


def chains_of(
    body: str, *names: str, ends: str = "stored, y", **options: Any
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The members of each chain, and why others stay."""
    around = loop_of(body, ends=ends)
    given = {"pipelining_direction": "backward", **options}
    candidates = [i for i in around.order if i.name in (names or ("ar",))]
    missed: dict[Any, str] = {}
    found = backward_chains(around, candidates, CollectivePipeliner.Options(**given), missed)
    for chain in found:
        done = {around.state}
        for member in chain.members:  # operands first
            assert done.issuperset(member.operands)
            done.add(member)
    return (
        {chain.moved.name: sorted(i.name for i in chain.members) for chain in found},
        {i.name: reason for i, reason in missed.items()},
    )


AR = "  ar = f32[1,8] all-reduce({}), replica_groups={{}}, to_apply=sum\n"
STORE = "  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"
OFF = "and should_add_loop_invariant_op_in_chain is off"


@pytest.mark.parametrize(
    ("before", "sent", "members"),
    [
        ("", "part", ["i", "part", "y", "zero"]),
        ("  n = f32[1,8] negate(part)\n", "n", ["i", "n", "part", "y", "zero"]),
        ("  n = f32[1,8] multiply(part, part)\n", "n", ["i", "n", "part", "y", "zero"]),
        ("  n = f32[1,8] constant({{1,2,3,4,5,6,7,8}})\n", "n", ["n"]),
        ("  n = f32[1,8] slice(y), slice={[0:1], [0:8]}\n", "n", ["n", "y"]),
        ("  f = f32[] convert(i)\n  n = f32[1,8] broadcast(f), dimensions={}\n", "n",
         ["f", "i", "n"]),
    ],
)  # fmt: skip
def test_members_of_a_chain(before: str, sent: str, members: list[str]) -> None:
    assert chains_of(before + AR.format(sent) + STORE) == ({"ar": members}, {})


@pytest.mark.parametrize(
    ("before", "sent", "options", "reason"),
    [
        ("  n = f32[1,8] slice(x), slice={[0:1], [0:8]}\n", "n", {},
         "it is computed from element 1 of the state, %x, which changes from trip to trip"),
        ("  tk = token[] after-all()\n  rv = (f32[1,8], u32[], token[]) recv(tk), channel_id=1, "
         'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}\n'
         "  rvd = (f32[1,8], token[]) recv-done(rv), channel_id=1\n"
         "  n = f32[1,8] get-tuple-element(rvd), index=0\n", "n", {},
         "it is computed from what %rvd receives"),
        ("  n = f32[1,8] negate(part)\n  side = f32[1,8] abs(n)\n", "n",
         {"should_add_loop_invariant_op_in_chain": False},
         f"%side reads %n too, which it is computed from, {OFF}"),
        ("  n = f32[1,8] negate(part)\n  m = f32[1,8] abs(n)\n  side = f32[1,8] sine(n)\n", "m",
         {"should_add_loop_invariant_op_in_chain": False},
         f"%side reads %n too, which it is computed from, {OFF}"),
        ("  side = f32[1,8] sine(part)\n", "part",
         {"should_add_loop_invariant_op_in_chain": False},
         f"%side reads %part too, which it is computed from, {OFF}"),
        ("  t = token[] after-all()\n  fed = ((f32[1,8]), token[]) infeed(t)\n"
         "  got = (f32[1,8]) get-tuple-element(fed), index=0\n"
         "  n = f32[1,8] get-tuple-element(got), index=0\n"
         "  side = f32[1,8] sine(n)\n", "n", {},
         "%got reads %fed too, which has a side effect"),
    ],
)  # fmt: skip
def test_chains_that_stay(before: str, sent: str, options: dict[str, Any], reason: str) -> None:
    assert chains_of(before + AR.format(sent) + STORE, **options) == ({}, {"ar": reason})


@pytest.mark.parametrize(
    ("before", "sent"),
    [
        ("  t = token[] after-all()\n  fed = ((f32[1,8]), token[]) infeed(t)\n"
         "  got = (f32[1,8]) get-tuple-element(fed), index=0\n"
         "  n = f32[1,8] get-tuple-element(got), index=0\n", "n"),  # nothing else reads that
        ("  f = f32[1] convert(one.i)\n  one.i = s32[1] reshape(i)\n", "part"),
        ("  f = f32[1,1] slice(part), slice={[0:1], [0:1]}\n  side = f32[1,1] negate(f)\n"
         "  g = f32[] reshape(f)\n  n = f32[1,8] broadcast(g), dimensions={}\n", "n"),
    ],
)  # fmt: skip
def test_numbers_and_what_only_the_chain_reads_are_no_obstacle(before: str, sent: str) -> None:
    lines = before.splitlines()
    if "one.i" in before:
        before = "\n".join(reversed(lines)) + "\n"
    found, missed = chains_of(
        before + AR.format(sent) + STORE, should_add_loop_invariant_op_in_chain=False
    )
    assert (list(found), missed) == (["ar"], {})


def test_each_candidate_has_a_chain_of_its_own() -> None:
    body = f"""  n = f32[1,8] negate(part)
{AR.format("part")}{AR.format("n").replace("ar =", "br =")}  both = f32[1,8] add(ar, br)
  stored = f32[4,8] dynamic-update-slice(x, both, i, zero)"""
    common = ["i", "part", "y", "zero"]
    found, missed = chains_of(body, "ar", "br")
    assert (found, missed) == ({"ar": common, "br": sorted(["n", *common])}, {})
    found, missed = chains_of(body, "ar", "br", max_pipelining_per_loop=1)
    (first,) = found
    (second,) = {"ar", "br"} - {first}
    assert missed == {second: "max_pipelining_per_loop is reached"}


def test_another_start_adds_its_operands_and_itself() -> None:
    body = f"  n = f32[4,8] negate(y)\n{AR.format('k')}{STORE}"
    body = "  k = f32[1,8] constant({{1,2,3,4,5,6,7,8}})\n" + body
    around = loop_of(body)
    named = {i.name: i for i in around.order}
    for start, members in (("n", ["k", "n", "y"]), ("ar", ["k"]), ("k", ["k"])):
        options = CollectivePipeliner.Options(
            pipelining_direction="backward",
            additional_chain_start_op_finder={named["ar"]: named[start]}.get,
        )
        missed: dict[Any, str] = {}
        (chain,) = backward_chains(around, [named["ar"]], options, missed)
        assert sorted(i.name for i in chain.members) == members


@pytest.mark.parametrize(
    ("place", "allowed", "reason"),
    [
        ("before", False, "it has to run after %first, by control"),
        ("after", False, "it has to run before %last, by control"),
        ("before", True, None),
        ("after", True, None),
    ],
)
def test_control_dependencies_of_what_moves(place: str, allowed: bool, reason: str | None) -> None:
    hint = ": should_allow_control_dependencies would drop that"
    own = ", control-predecessors={first}" if place == "before" else ""
    last = ", control-predecessors={ar}" if place == "after" else ""
    line = AR.format("part").rstrip("\n")
    body = f"""  first = f32[1,8] abs(part)
{line}{own}
  last = f32[1,8] sine(part){last}
{STORE}"""
    found, missed = chains_of(body, should_allow_control_dependencies=allowed)
    assert list(found) == ([] if reason else ["ar"])
    assert missed == ({"ar": reason + hint} if reason else {})


@pytest.mark.parametrize(
    ("start", "step", "limit", "direction", "expected"),
    [
        (0, 1, 4, "LT", (0, 0, 1, 4)),
        (3, 2, 8, "LE", (0, 3, 2, 3)),
        (9, -3, 0, "GE", (0, 9, -3, 4)),
        (0, 1, 2, "LT", (0, 0, 1, 2)),
    ],
)
def test_what_is_proved_of_a_loop(
    start: int, step: int, limit: int, direction: str, expected: tuple[int, ...]
) -> None:
    body = f"{AR.format('part')}{STORE}"
    around = loop_of(body, start=start, step=step, limit=limit, direction=direction)
    assert (around.counter, around.start, around.step, around.trips) == expected
    assert around.size == 3
    assert [around.keeps(index) for index in range(3)] == [False, False, True]
    assert [[i.name for i in around.reads(index)] for index in range(3)] == [["i"], ["x"], ["y"]]
    named = {i.name: i for i in around.order}
    assert [around.element_of(named[name]) for name in ("i", "x", "y", "part", "p")] == [
        *(0, 1, 2, None, None)
    ]


@pytest.mark.parametrize(("limit", "made"), [(1, "one trip"), (0, "no trip"), (-3, "no trip")])
def test_a_loop_has_to_make_two_trips(limit: int, made: str) -> None:
    with pytest.raises(NotPipelined, match=f"^its loop %w makes {made}, two are needed$"):
        loop_of(f"{AR.format('part')}{STORE}", limit=limit)
