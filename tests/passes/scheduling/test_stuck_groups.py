"""Scheduling groups that are begun and cannot be finished: XLA refuses, we take them apart."""

from __future__ import annotations

from typing import Any

from tests.passes.scheduling.test_scheduler_messages import group, refusal, remarks, scheduled

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


def gather(number: int, start: str = "", done: str = "") -> tuple[str, str]:
    """The start and the done of a collective."""
    attributes = "dimensions={0}, replica_groups={{0,1}}, use_global_device_ids=true"
    operation = f"all-gather-start(p{number}), channel_id={number}, {attributes}"
    return (
        f"st{number} = (f32[8], f32[16]) {operation}{start}",
        f"dn{number} = f32[16] all-gather-done(st{number}){done}",
    )


START_1, DONE_1 = gather(1, group(1), f", control-predecessors={{st2}}{group(1)}")
START_2, DONE_2 = gather(2, f", control-predecessors={{st1}}{group(1)}", group(1))
PARAMETERS = [f"p{number} = f32[8] parameter({number - 1})" for number in (1, 2, 3)]
CROSSED = [*PARAMETERS, START_1, START_2, DONE_1, DONE_2, "y = f32[16] add(dn1, dn2)"]
"""Both starts of the group come before its first done."""
ALONE = scheduled("\n".join([*CROSSED, "ROOT r = (f32[16]) tuple(y)"]))
BESIDE = scheduled("\n".join([*CROSSED, *gather(3), "ROOT r = (f32[16], f32[16]) tuple(y, dn3)"]))
"""A third collective is in flight when the group begins, and leaves room for one more."""


def order_of(text: str, **options: Any) -> list[str]:
    """The order of the entry that the pass makes."""
    module = parse_module(text)
    create_pass("latency-hiding-scheduler", options).run(module, PassContext())
    return [instruction.name for instruction in module.entry.instructions]


def test_what_is_left_of_a_stuck_group_is_scheduled_and_a_remark_says_so() -> None:
    options = {"all_gather_overlap_limit": 2}
    order = order_of(BESIDE, **options)
    assert order.index("st3") > order.index("dn1")  # it gives back what the group wants
    assert order.index("st3") < order.index("dn2")
    assert remarks(BESIDE, **options)["missed dn1"] == (
        "XLA refuses this module (Couldn't find an annotated node to schedule): with its group 1 "
        "under way it needs 1 more of kAllGather than is left of 2; here what was left of the "
        "group is scheduled like other instructions: give the pass all_gather_overlap_limit=3, or "
        "take operations out of the group"
    )


def test_a_group_that_is_finished_has_no_such_remark() -> None:
    options = {"all_gather_overlap_limit": 3}
    order = order_of(BESIDE, **options)
    assert {*order[order.index("st1") :][:4]} == {"st1", "st2", "dn1", "dn2"}
    assert "missed dn1" not in remarks(BESIDE, **options)


def test_where_nothing_else_gives_way_the_group_is_refused() -> None:
    error = refusal(ALONE)
    assert error.message == (
        "Couldn't find an annotated node to schedule. Annotation id: 1. '%dn1' needs 1 more of "
        "kAllGather than is left of 1"
    )
    assert error.help == (
        "give the pass all_gather_overlap_limit=2, or take operations out of the group"
    )


SAME_DEVICES = {"preset": "xla-gpu", "parallel_collective_overlap_limit": 4}


def test_collectives_of_the_same_devices_overlap_within_the_limit() -> None:
    order = order_of(ALONE, **SAME_DEVICES)
    assert order.index("st2") < order.index("dn1")


def test_collectives_of_the_same_devices_are_stuck_where_streams_are_told_apart() -> None:
    error = refusal(ALONE, **SAME_DEVICES, enable_collective_multi_streaming=True)
    assert "Annotation id: 1. '%dn1' may not overlap what is in flight" in error.message
    assert error.help == "take operations out of the group"
