"""Reasons why a collective stays where it is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.collectives.collective_pipeliner.loops import STORED, loop, pipelined


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("call(part), to_apply=all", "which %cr calls: inline that first"),
        (
            "fusion(part), kind=kLoop, calls=all",
            "which the fusion %cr runs as one: run this pass before fusion",
        ),
    ],
)
def test_what_is_called_in_a_loop_is_named(call: str, reason: str) -> None:
    text = loop(
        f"""  cr = f32[1,8] {call}
  stored = f32[4,8] dynamic-update-slice(x, cr, i, zero)"""
    ).replace(
        "\nbody {",
        "\nall {\n  v = f32[1,8] parameter(0)\n"
        "  ROOT ar = f32[1,8] all-reduce(v), replica_groups={}, to_apply=sum\n}\n\nbody {",
    )
    _, remarks = pipelined(text, changes=False)
    assert remarks == [f"missed %ar: not pipelined: it is in %all, {reason}"]


@pytest.mark.parametrize(
    ("body", "options", "said"),
    [
        (STORED.replace("to_apply=sum", "to_apply=sum, control-predecessors={part}"), {},
         "it has to run after %part, by control"),
        (STORED + "\n  after = f32[1,8] negate(part), control-predecessors={ar}", {},
         "it has to run before %after, by control"),
        (STORED.replace("to_apply=sum", "to_apply=sum, control-predecessors={part}"),
         {"pipelining_direction": "backward", "should_process": ("all-reduce",)},
         "it has to run after %part, by control: should_allow_control_dependencies would drop "
         "that"),
        (STORED, {"only_marked": True},
         "only_marked is on, and it has no frontend attribute is_pipelineable"),
        (STORED, {"pipelining_direction": "backward"},
         "should_process is for all-gather, unless it is given; pipelining_direction is backward"),
        (STORED.replace("(x, ar, i, zero)", "(x, part, i, zero)"), {}, "nothing uses it"),
        (STORED.replace("(x, ar, i, zero)", "(x, ar, i, i)"), {},
         "%stored does not store along one dimension: all indices but one have to be 0"),
    ],
)  # fmt: skip
def test_why_a_collective_stays(body: str, options: dict[str, Any], said: str) -> None:
    _, remarks = pipelined(loop(body), changes=False, **options)
    assert remarks == [f"missed %ar: not pipelined: {said}"]


@pytest.mark.parametrize(("limit", "made"), [(1, "one trip"), (0, "no trip")])
def test_a_loop_of_less_than_two_trips_stays(limit: int, made: str) -> None:
    _, remarks = pipelined(loop(limit=limit), changes=False)
    assert remarks == [f"missed %ar: not pipelined: its loop %w makes {made}, two are needed"]


def test_what_is_asynchronous_already_stays() -> None:
    body = STORED.replace("ar = f32[1,8] all-reduce(", "start = f32[1,8] all-reduce-start(")
    body = body.replace("to_apply=sum", "to_apply=sum\n  ar = f32[1,8] all-reduce-done(start)")
    _, remarks = pipelined(loop(body), changes=False)
    assert remarks == [
        "missed %start: not pipelined: it is asynchronous already: run this pass before "
        "async-collective-creator"
    ]


def test_what_is_in_a_branch_of_a_loop_is_named() -> None:
    text = loop(
        """  flag = pred[] constant(true)
  cr = f32[1,8] conditional(flag, part, part), true_computation=all, false_computation=none
  stored = f32[4,8] dynamic-update-slice(x, cr, i, zero)"""
    ).replace(
        "\nbody {",
        "\nall {\n  v = f32[1,8] parameter(0)\n"
        "  ROOT ar = f32[1,8] all-reduce(v), replica_groups={}, to_apply=sum\n}\n\n"
        "none {\n  ROOT v = f32[1,8] parameter(0)\n}\n\nbody {",
    )
    _, remarks = pipelined(text, changes=False)
    assert remarks == [
        "missed %ar: not pipelined: it is in %all, a branch of the conditional %cr, which not "
        "every trip takes"
    ]
