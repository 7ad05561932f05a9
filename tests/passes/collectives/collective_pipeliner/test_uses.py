"""The instructions that move with a collective, and those that it reads from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.collectives.collective_pipeliner.loops import loop

from hloopt.passes.collectives.collective_pipeliner import CollectivePipeliner
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop, counted_loop
from hloopt.passes.collectives.collective_pipeliner.matching import forward_moves
from hloopt.passes.collectives.collective_pipeliner.moves import Move
from hloopt.text import parse_module

AR = "  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum\n"
STORE = "  stored = f32[4,8] dynamic-update-slice(x, last, i, zero)"


def loop_of(body: str, **changes: Any) -> CountedLoop:
    module = parse_module(loop(body, **changes))
    (around,) = [i for i in module.entry.instructions if i.name == "w"]
    return counted_loop(around)


def moves_of(
    body: str, *names: str, changes: dict[str, Any] | None = None, **options: Any
) -> tuple[list[Move], dict[str, str]]:
    """The moves of some instructions of a loop, and why others of them stay."""
    around = loop_of(body, **(changes or {}))
    candidates = [i for i in around.order if i.name in (names or ("ar",))]
    missed: dict[Any, str] = {}
    found = forward_moves(around, candidates, CollectivePipeliner.Options(**options), missed)
    return found, {i.name: reason for i, reason in missed.items()}


def names(instructions: Any) -> list[str]:
    return [i.name for i in instructions]


@pytest.mark.parametrize(
    ("body", "formatting", "copied", "dependencies"),
    [
        ("  last = f32[1,8] negate(ar)\n", ["last"], [], []),
        ("  flat = f32[8] reshape(ar)\n  last = f32[1,8] reshape(flat)\n", ["flat", "last"], [],
         []),
        ("  last = f32[1,8] add(ar, part)\n", ["last"], [], ["part"]),
        ("  last = f32[1,8] add(ar, ar)\n", ["last"], [], []),
        ("  k = f32[] constant(2)\n  spread = f32[1,8] broadcast(k), dimensions={}\n"
         "  last = f32[1,8] multiply(ar, spread)\n", ["k", "last", "spread"], ["k", "spread"], []),
        ("  f = f32[] convert(i)\n  spread = f32[1,8] broadcast(f), dimensions={}\n"
         "  last = f32[1,8] multiply(ar, spread)\n", ["last", "spread"], ["spread"], ["f"]),
        ("  flat = f32[8] reshape(ar)\n  spread = f32[1,8] broadcast(flat), dimensions={1}\n"
         "  last = f32[1,8] multiply(ar, spread)\n", ["flat", "last", "spread"], [], []),
        ("  k = f32[1,8] constant({{1,2,3,4,5,6,7,8}})\n  last = f32[1,8] multiply(ar, k)\n",
         ["last"], [], ["k"]),
        ("  one = s32[] constant(1)\n  two = s32[] add(one, one)\n"
         "  wide = f32[1,16] concatenate(ar, part), dimensions={1}\n"
         "  last = f32[1,8] dynamic-slice(wide, zero, two), dynamic_slice_sizes={1,8}\n",
         ["last", "one", "two", "wide", "zero"], ["one", "two", "zero"], ["part"]),
        ("  rows = f32[1,8] negate(ar)\n  more = f32[1,8] abs(ar)\n"
         "  last = f32[1,8] add(rows, more)\n", ["last", "more", "rows"], [], []),
        ("  n = f32[1,8] negate(part)\n  rows = f32[1,8] add(ar, n)\n"
         "  last = f32[1,8] subtract(n, rows)\n", ["last", "rows"], [], ["n"]),
    ],
)  # fmt: skip
def test_what_moves_along(
    body: str, formatting: list[str], copied: list[str], dependencies: list[str]
) -> None:
    ((move,), missed) = moves_of(AR + body + STORE)
    assert missed == {}
    assert names(move.collectives) == ["ar"]
    assert sorted(names(move.formatting)) == formatting
    done: set[Any] = {*move.collectives, *move.dependencies}
    for instruction in move.formatting:  # operands first
        assert done.issuperset(instruction.operands)
        done.add(instruction)
    assert sorted(names(move.copied)) == copied
    assert names(move.dependencies) == dependencies
    assert sorted(names(move.through)) == sorted(set(formatting) - set(copied))


@pytest.mark.parametrize(
    ("store", "dimension", "index", "output"),
    [
        ("stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)", 0, (0, 1), 1),
        ("stored = f32[4,8] dynamic-update-slice(x, ar, zero, i)", 1, (0, 1), 1),
        ("three = s32[] constant(3)\n  at = s32[] subtract(three, i)\n"
         "  stored = f32[4,8] dynamic-update-slice(x, ar, at, zero)", 0, (3, -1), 1),
        ("held = f32[4,8] opt-barrier(x)\n"
         "  stored = f32[4,8] dynamic-update-slice(held, ar, i, zero)", 0, (0, 1), 1),
    ],
)  # fmt: skip
def test_where_a_value_is_stored(
    store: str, dimension: int, index: tuple[int, int], output: int
) -> None:
    ((move,), _) = moves_of(f"{AR}  {store}")
    (found,) = move.stores
    assert (found.dimension, found.index, found.output) == (dimension, index, output)
    assert (found.instruction.name, found.stored.name) == ("stored", "ar")
    assert found.offset is found.instruction.operands[2 + dimension]
    assert found.buffer is found.instruction.operands[0]


@pytest.mark.parametrize(
    ("options", "formatting", "reuses"),
    [
        ({"reuse_pipelined_op_buffer": True}, "  last = f32[1,8] negate(ar)\n", True),
        ({"reuse_pipelined_op_buffer": False}, "  last = f32[1,8] negate(ar)\n", False),
        ({"reuse_pipelined_op_buffer": lambda i: i.name == "ar"},
         "  last = f32[1,8] negate(ar)\n", True),
        ({"reuse_pipelined_op_buffer": lambda i: i.name != "ar"},
         "  last = f32[1,8] negate(ar)\n", False),
        ({"reuse_pipelined_op_buffer": True},
         "  last = f32[1,4] slice(ar), slice={[0:1], [0:4]}\n", False),
    ],
)  # fmt: skip
def test_operands_that_may_wait_where_results_are_stored(
    options: dict[str, Any], formatting: str, reuses: bool
) -> None:
    ((move,), _) = moves_of(AR + formatting + STORE, **options)
    assert move.reuses_buffer is reuses
    assert move.waits_to_the_end is False


@pytest.mark.parametrize("is_new", [True, False])
def test_what_is_stored_in_a_new_buffer_waits_to_the_end(is_new: bool) -> None:
    note = ', frontend_attributes={always_sink="1"}'
    buffer = "  n = f32[4,8] negate(y)\n" if is_new else "  n = f32[4,8] opt-barrier(x)\n"
    store = f"  stored = f32[4,8] dynamic-update-slice(n, ar, i, zero){note}"
    ((move,), _) = moves_of(AR + buffer + store, reuse_pipelined_op_buffer=True)
    assert move.waits_to_the_end is is_new
    assert move.reuses_buffer is not is_new


PAIR = """  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  spread = f32[] constant(2)
  bs = f32[1,8] broadcast(spread), dimensions={}
  n = f32[1,8] multiply(ar, bs)
  br = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  m = f32[1,8] multiply(br, bs)
  last = f32[1,8] add(n, m)
"""


@pytest.mark.parametrize(
    ("direction", "collectives", "through"),
    [
        ("forward", ["ar"], ["br", "last", "m", "n"]),
        ("forward-sink", ["ar", "br"], ["last", "m", "n"]),
    ],
)
def test_collectives_with_one_store_are_one_move(
    direction: str, collectives: list[str], through: list[str]
) -> None:
    (moves, missed) = moves_of(PAIR + STORE, "ar", "br", pipelining_direction=direction)
    assert missed == {}
    (move,) = moves
    assert names(move.collectives) == collectives
    assert sorted(names(move.through)) == through
    assert sorted(names(move.copied)) == ["bs", "spread"]
    assert names(s.instruction for s in move.stores) == ["stored"]
    assert names(move.dependencies) == ([] if direction == "forward-sink" else ["part"])


@pytest.mark.parametrize(
    ("limit", "stays"), [(None, {}), (1, {"br": "max_pipelining_per_loop is reached"}), (2, {})]
)
def test_moves_up_to_the_limit(limit: int | None, stays: dict[str, str]) -> None:
    body = """  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  br = f32[1,8] all-reduce(own), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)
  other = f32[4,8] dynamic-update-slice(y, br, i, zero)"""
    text = loop(body, ends="stored, other")
    read = "part = f32[1,8] dynamic-slice(y, i, zero), dynamic_slice_sizes={1,8}"
    made = "f = f32[] convert(i)\n  part = f32[1,8] broadcast(f), dimensions={}\n"
    text = text.replace(read, f"{made}  own = f32[1,8] negate(part)")
    (around,) = [i for i in parse_module(text).entry.instructions if i.name == "w"]
    counted = counted_loop(around)
    missed: dict[Any, str] = {}
    options = CollectivePipeliner.Options(max_pipelining_per_loop=limit)
    candidates = [i for i in counted.order if i.name in ("ar", "br")]
    found = forward_moves(counted, candidates, options, missed)
    assert [names(move.collectives) for move in found] == [["ar"], ["br"]][: 2 - len(stays)]
    assert {i.name: reason for i, reason in missed.items()} == stays
