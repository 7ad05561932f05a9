"""Options of collective-pipeliner, and hooks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.collectives.collective_pipeliner.loops import STORED, loop, pipelined

from hloopt.diagnostics import HloError
from hloopt.ir import Opcode
from hloopt.ir.attributes.frontend_attributes import set_frontend_attributes
from hloopt.pass_framework.registry import create_pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level_to_operate_on": -1}, "'level_to_operate_on' takes no negative number"),
        ({"max_pipelining_per_loop": -3}, "'max_pipelining_per_loop' takes no negative number"),
        (
            {"should_process": "move-to-host", "pipelining_direction": "backward"},
            "move-to-host is pipelined forward, not backward",
        ),
        (
            {"should_process": "move-to-device"},
            "move-to-device is pipelined backward, not forward: set pipelining_direction=backward",
        ),
    ],
)
def test_options_that_could_move_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(HloError, match=said):
        create_pass("collective-pipeliner", options)


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


def test_another_should_process_is_the_users_choice() -> None:
    assert pipelined(loop(), changes=False, should_process=("all-gather",))[1] == []


def test_only_what_is_marked() -> None:
    text = loop(
        STORED.replace("to_apply=sum", 'to_apply=sum, frontend_attributes={is_pipelineable="{}"}')
    )
    pipelined(text.replace('"{}"', '"true"'), only_marked=True)
    pipelined(text.replace('"{}"', '"false"'), only_marked=True, changes=False)
