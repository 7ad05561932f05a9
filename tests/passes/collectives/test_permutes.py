"""Permutes of a loop's body: which are split, marked for a stream, or wait."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked
from tests.passes.collectives.test_collective_permute_decomposer import NAME, loop, named, permute

from hloopt.ir import Module, Opcode
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

PARALLEL = {"pipeline_parallelism_opt_level": "enable"}


def streams(module: Module, *names: str) -> list[str | None]:
    """The stream that the recv of each permute is marked with."""
    recvs = [named(module, f"{name}-recv") for name in names]
    return [frontend_attribute(recv, "_xla_send_recv_pipeline") for recv in recvs]


@pytest.mark.parametrize(
    ("sent", "expected"), [("x", ["0", None]), ("n", [None, "0"]), ("r.x", [None, "0"])]
)
def test_the_first_that_sends_an_element_of_the_state_is_on_a_stream(
    sent: str, expected: list[str | None]
) -> None:
    text = loop(
        "n = f32[8] negate(x)",
        "r.x = f32[8] reshape(x)",
        f"a = {permute('{{0,1}}', sent)}",
        f"b = {permute('{{1,2}}', 'x', more='channel_id=2')}",
        "c = f32[8] add(a, b)",
    )
    assert streams(run_checked(NAME, text), "a", "b") == expected


@pytest.mark.parametrize(
    ("first", "second", "third", "expected"),
    [
        ("{{1,2}}", "{{3,0}}", "{{0,1},{1,2},{2,3}}", ["0", None, None]),
        ("{{3,0}}", "{{1,2}}", "{{0,1},{1,2},{2,3}}", ["0", None, "1"]),
        ("{{0,1},{1,2},{2,3}}", "{{1,2}}", "{{3,0}}", ["1", None, "0"]),
        ("{{1,0}}", "{{0,1}}", "{{1,2}}", ["0", "1", None]),
        ("{{0,1}}", "{{0,1}}", "{{1,2}}", ["0", None, None]),
        ("{{0,3}}", "{{3,2},{2,1},{1,0}}", "{{1,2}}", ["0", None, None]),
    ],
)
def test_the_ring_of_the_first_has_two_streams(
    first: str, second: str, third: str, expected: list[str | None]
) -> None:
    text = loop(
        f"a = {permute(first)}",
        f"b = {permute(second, more='channel_id=2')}",
        f"d = {permute(third, more='channel_id=3')}",
        *("e = f32[8] add(a, b)", "c = f32[8] add(e, d)"),
    )
    assert streams(run_checked(NAME, text), "a", "b", "d") == expected


@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [
        ("{{0,1}}", "{{0,1},{1,2}}", "b"),
        ("{{0,1},{1,2}}", "{{0,1}}", "a"),
        ("{{0,1}}", "{{1,2}}", "a"),
    ],
)
def test_the_one_with_the_most_pairs_is_a_pipeline_stage(
    first: str, second: str, chosen: str
) -> None:
    text = loop(
        f"a = {permute(first)}",
        f"b = {permute(second, more='channel_id=2')}",
        "c = f32[8] add(a, b)",
    )
    module, context = parse_module(text), PassContext(NAME)
    assert create_pass(NAME, PARALLEL).run(module, context)
    (left,) = module.instructions(Opcode.COLLECTIVE_PERMUTE)
    (other,) = {"a", "b"} - {chosen}
    assert left.name == other
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        ("missed", other, f"%{chosen} is the one of its loop to be split"),
        (
            "applied",
            chosen,
            "split into send and recv" + ", pipelined on stream 0" * (chosen == "a"),
        ),
    ]
    assert context.applications.last is not None
    assert context.applications.last.instruction == chosen


@pytest.mark.parametrize(
    ("threshold", "reason"),
    [
        (0, None),
        (32, None),
        (33, "it has 32 bytes, and threshold_in_bytes is 33"),
        (1000, "it has 32 bytes, and threshold_in_bytes is 1,000"),
    ],
)
def test_the_threshold_is_the_least_size(threshold: int, reason: str | None) -> None:
    text = loop(f"c = {permute('{{0,1}}')}")
    if reason is None:
        run_checked(NAME, text, threshold_in_bytes=threshold)
    else:
        assert reasons_to_stay(NAME, text, threshold_in_bytes=threshold) == [reason]


@pytest.mark.parametrize("channel", ["", ", channel_id=1"])
def test_a_permute_without_pairs_on_one_device_is_split(channel: str) -> None:
    """There its pairs name no devices that a send could take for others."""
    line = f"c = f32[8] collective-permute(x), source_target_pairs={{}}{channel}"
    text = loop(line, header="replica_count=1")
    (pairs,) = {
        frontend_attribute(i, "_xla_send_recv_source_target_pairs")
        for i in run_checked(NAME, text).instructions()
        if i.opcode in (Opcode.SEND, Opcode.RECV)
    }
    assert pairs == "{}"


@pytest.mark.parametrize(("devices", "stays"), [(65536, False), (65537, True)])
def test_devices_that_are_looked_at(devices: int, stays: bool) -> None:
    text = loop(f"c = {permute('{{0,1}}')}", header=f"num_partitions={devices}")
    reason = "which of 65,537 devices meet in others is not looked at"
    if stays:
        assert reasons_to_stay(NAME, text) == [reason]
    else:
        run_checked(NAME, text)


def test_three_permutes_are_a_chain() -> None:
    text = loop(
        f"a = {permute('{{0,1}}')}",
        f"b = {permute('{{1,2}}', more='channel_id=2')}",
        f"d = {permute('{{2,3}}', more='channel_id=3')}",
        *("e = f32[8] add(a, b)", "c = f32[8] add(e, d)"),
    )
    module = run_checked(NAME, text)

    def waits(step: str) -> list[str]:
        return [i.name for i in named(module, step).control_predecessors]

    assert [waits(f"{name}-recv") for name in "abd"] == [[], ["a-send"], ["b-send"]]
    assert [waits(f"{name}-send") for name in "abd"] == [["a-recv"], ["b-recv"], ["d-recv"]]
    assert [waits(f"{name}-recv-done") for name in "abd"] == [
        ["a-send"],
        ["b-send", "a-send-done"],
        ["d-send", "b-send-done"],
    ]


def test_what_only_a_branch_or_an_entry_has_stays() -> None:
    text = loop(f"c = {permute('{{0,1}}')}")
    text = text.replace("ROOT loop", "loop")
    text = text.replace(
        "body=body\n", f"body=body\n  y = f32[8] get-tuple-element(loop), index=1\n"
        f"  ROOT last = {permute('{{0,1}}', 'y', more='channel_id=2')}\n"
    )  # fmt: skip
    module, context = parse_module(text), PassContext(NAME)
    assert create_pass(NAME).run(module, context)
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        ("missed", "last", "it is not in the body of a while loop"),
        ("applied", "c", "split into send and recv, pipelined on stream 0"),
    ]


@pytest.mark.parametrize(
    ("groups", "waits"),
    [
        ("{{0,1},{2},{3}}", True),
        ("{{1,0},{2,3}}", True),
        ("{{0,2},{1,3}}", False),
        ("{{0},{1},{2,3}}", False),
        ("{{2,3,0,1}}", True),
    ],
)
@pytest.mark.parametrize("options", [{}, PARALLEL])
def test_collectives_in_which_two_of_its_devices_meet_wait(
    groups: str, waits: bool, options: dict[str, Any]
) -> None:
    reduced = f"replica_groups={groups}, use_global_device_ids=true, to_apply=plus, channel_id=9"
    text = loop(
        f"d = {permute('{{0,1}}')}",
        f"a = f32[8] all-reduce(x), {reduced}",
        "c = f32[8] add(a, d)",
    )
    module = run_checked(NAME, text, **options)
    reduce = named(module, "a")
    assert [i.name for i in reduce.control_predecessors] == ["d-send-done"] * waits
    note = frontend_attribute(reduce, "_xla_gpu_collective_stream")
    assert note == ("p2p" if waits and options else None)
