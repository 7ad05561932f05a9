"""Instructions that the options of collective-pipeliner pick, and loops that have enough."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.ir import Instruction, Opcode
from hloopt.passes.collectives.collective_pipeliner import CollectivePipeliner
from hloopt.text import parse_module

Options = CollectivePipeliner.Options

TEXT = """HloModule m
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4,4] parameter(1)
  i = s32[] parameter(2)
  ar = f32[4] all-reduce(x), to_apply=sum
  ar.channel = f32[4] all-reduce(x), channel_id=1, to_apply=sum
  neg.channel = f32[4] negate(x)
  rs = f32[2] reduce-scatter(x), dimensions={0}, replica_groups={{0,1}}, to_apply=sum
  ag = f32[8] all-gather(x), dimensions={0}, replica_groups={{0,1}}
  truly = f32[4] all-reduce(x), to_apply=sum, frontend_attributes={is_pipelineable="True"}
  t = f32[4] all-reduce(x), to_apply=sum, frontend_attributes={is_pipelineable="t"}
  yes = f32[4] all-reduce(x), to_apply=sum, frontend_attributes={is_pipelineable="yes"}
  y.only = f32[4] all-reduce(x), to_apply=sum, frontend_attributes={is_pipelineable="y"}
  one = f32[4] all-reduce(x), to_apply=sum, frontend_attributes={is_pipelineable="1"}
  no = f32[4] all-reduce(x), to_apply=sum, frontend_attributes={is_pipelineable="no"}
  two = f32[4] all-reduce(x), to_apply=sum, frontend_attributes={is_pipelineable="2"}
  marked.add = f32[4] add(x, x), frontend_attributes={is_pipelineable="true"}
  host = f32[4] custom-call(x), custom_call_target="MoveToHost"
  host.row = f32[1,4] reshape(host)
  stored = f32[4,4] dynamic-update-slice(y, host.row, i, i)
  host.far = f32[4] custom-call(x), custom_call_target="MoveToHost"
  far.wide = f32[1,4] broadcast(host.far), dimensions={1}
  far.turned = f32[4,1] transpose(far.wide), dimensions={1,0}
  far.stored = f32[4,4] dynamic-update-slice(y, far.turned, i, i)
  host.used = f32[4] custom-call(x), custom_call_target="MoveToHost"
  used.row = f32[1,4] reshape(host.used)
  used.stored = f32[4,4] dynamic-update-slice(y, used.row, i, i)
  used.too = f32[4] negate(host.used)
  host.neg = f32[4] custom-call(x), custom_call_target="MoveToHost"
  neg.neg = f32[4] negate(host.neg)
  neg.row = f32[1,4] reshape(neg.neg)
  neg.stored = f32[4,4] dynamic-update-slice(y, neg.row, i, i)
  host.lost = f32[4] custom-call(x), custom_call_target="MoveToHost"
  host.end = f32[4] custom-call(x), custom_call_target="MoveToHost"
  host.end.row = f32[1,4] reshape(host.end)
  elsewhere = f32[1,4] custom-call(x), custom_call_target="Other"
  elsewhere.stored = f32[4,4] dynamic-update-slice(y, elsewhere, i, i)
  part = f32[1,4] dynamic-slice(y, i, i), dynamic_slice_sizes={1,4}
  device = f32[1,4] custom-call(part), custom_call_target="MoveToDevice"
  part.far = f32[1,4] dynamic-slice(y, i, i), dynamic_slice_sizes={1,4}
  far.flat = f32[4] reshape(part.far)
  far.spread = f32[4,2] broadcast(far.flat), dimensions={0}
  far.back = f32[2,4] transpose(far.spread), dimensions={1,0}
  device.far = f32[2,4] custom-call(far.back), custom_call_target="MoveToDevice"
  part.neg = f32[1,4] negate(part)
  device.neg = f32[1,4] custom-call(part.neg), custom_call_target="MoveToDevice"
  device.whole = f32[4,4] custom-call(y), custom_call_target="MoveToDevice"
  device.other = f32[1,4] custom-call(part), custom_call_target="Other"
  ROOT r = tuple(stored, far.stored, used.stored, used.too, neg.stored, elsewhere.stored)
}
"""
ENTRY = parse_module(TEXT).entry
NAMED = {i.name: i for i in ENTRY.instructions}
SUMS = {"ar", "ar.channel", "truly", "t", "yes", "y.only", "one", "no", "two"}
MARKED = {"truly", "t", "yes", "y.only", "one"}
HOST = {"host", "host.far"}
DEVICE = {"device", "device.far"}


def picked(**options: Any) -> set[str]:
    """The names of what is picked."""
    chosen = Options(**options)
    return {i.name for i in ENTRY.instructions if chosen.processes(i)}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, SUMS | {"rs"}),
        ({"pipelining_direction": "backward"}, {"ag"}),
        ({"pipelining_direction": "forward-sink"}, SUMS),
        ({"should_process": (Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER)}, {"ag", "rs"}),
        ({"should_process": lambda i: i.name == "x"}, {"x"}),
        ({"should_process": "move-to-host"}, HOST),
        ({"should_process": "move-to-device", "pipelining_direction": "backward"}, DEVICE),
        ({"only_marked": True}, MARKED),
        ({"only_marked": True, "should_process": (Opcode.ADD,)}, {"marked.add"}),
        ({"only_marked": True, "should_process": "move-to-host"}, set()),
    ],
)
def test_what_is_picked(options: dict[str, Any], expected: set[str]) -> None:
    assert picked(**options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER)),
        ({"pipelining_direction": "backward"}, (Opcode.ALL_GATHER,)),
        ({"should_process": (Opcode.ADD,)}, (Opcode.ADD,)),
        ({"should_process": lambda _: True}, ()),
        ({"should_process": "move-to-host"}, ()),
    ],
)
def test_the_opcodes_that_remarks_name(
    options: dict[str, Any], expected: tuple[Opcode, ...]
) -> None:
    assert Options(**options).opcodes == expected


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        (None, {"ar", "neg.channel"}),
        ((Opcode.NEGATE,), {"neg.channel"}),
        (lambda i: i.name == "ar", {"ar"}),
    ],
)
def test_what_may_be_formatting(accepted: Any, expected: set[str]) -> None:
    accepts = Options(acceptable_formatting=accepted).accepts_formatting
    assert {name for name in ("ar", "neg.channel") if accepts(NAMED[name])} == expected


def test_where_another_chain_starts() -> None:
    def start(name: str, **options: Any) -> Instruction | None:
        return Options(pipelining_direction="backward", **options).finds_chain_start(NAMED[name])

    to_device = {"should_process": "move-to-device"}
    assert start("ag") is None
    assert start("device") is None
    assert start("device", **to_device) is NAMED["part"]
    assert start("device.far", **to_device) is NAMED["part.far"]
    assert start("device.neg", **to_device) is None
    given = {"additional_chain_start_op_finder": lambda i: NAMED["x"] if i is NAMED["ag"] else None}
    assert start("ag", **given) is NAMED["x"]
    assert start("device", **to_device, **given) is None


@pytest.mark.parametrize(("limit", "enough"), [(None, None), (0, 1), (1, 1), (2, 2), (3, 3)])
def test_the_most_moves_of_a_loop(limit: int | None, enough: int | None) -> None:
    options = Options(max_pipelining_per_loop=limit)
    found = next((moves for moves in range(9) if options.has_enough(moves)), None)
    assert found == enough


def test_dead_copies_that_stay_have_channels_and_communicate() -> None:
    names = ("ar", "ar.channel", "neg.channel")
    stays = Options(remove_cross_partition_collective_ops=False)
    NAMED["neg.channel"].set_attribute("channel_id", "7")
    assert [stays.leaves_behind(NAMED[name]) for name in names] == [False, True, False]
    assert not any(Options().leaves_behind(NAMED[name]) for name in names)
    NAMED["neg.channel"].set_attribute("channel_id", None)


@pytest.mark.parametrize(
    ("threshold", "delays", "waits"),
    [(None, True, False), (3, True, True), (4, True, True), (5, True, False), (4, False, False)],
)
def test_what_waits_for_the_last_round_to_be_sunk(
    threshold: int | None, delays: bool, waits: bool
) -> None:
    options = Options(
        collective_size_threshold_to_delay_sinking=threshold,
        delay_sinking_large_collectives=delays,
    )
    assert options.is_delayed(NAMED["ar"]) is waits
