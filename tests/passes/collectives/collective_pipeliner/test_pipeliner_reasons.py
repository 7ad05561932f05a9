"""Conditions that keep collective-pipeliner from moving a collective, with their remarks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.collectives.collective_pipeliner.loop_of_buffers import (
    REDUCED,
    STORED,
    loop,
    reasons,
)

from hloopt.diagnostics import HloError
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"init": "init = {state} parameter(4)"},
            "its loop %w starts with %init, which is not a tuple",
        ),
        (
            {"root": "made = {state} tuple(j, {ends}, z, k, tok) ROOT o = {state} copy(made)"},
            "its loop %w has a body that does not end with a tuple",
        ),
        (
            {"counting": "j = s32[] add(i, one) whole.state = tuple(p)"},
            "its loop %w has a state that %whole.state uses as a whole, not by its elements",
        ),
        (
            {"counting": "j = s32[] multiply(i, two)", "first": 1},
            "its loop %w has no counter that goes from constant to constant",
        ),
    ],
)
def test_loops_that_are_not_pipelined(changes: dict[str, Any], reason: str) -> None:
    assert reasons(loop(REDUCED + STORED, **changes)) == [reason]


@pytest.mark.parametrize(
    ("body", "ends", "options", "reason"),
    [
        # What is moved
        (
            "ars = (f32[1,8], f32[1,8]) all-reduce(part, part), to_apply=sum\n"
            "ar = f32[1,8] get-tuple-element(ars), index=0\n" + STORED,
            "stored, y",
            {},
            "it has 2 operands, not one",
        ),
        (
            REDUCED
            + "s = f32[1,8] slice(ar), slice={[0:1],[0:8]}\n"
            + "t = f32[1,8] slice(ar), slice={[0:1],[0:8]}\n"
            + "both = f32[1,8] add(s, t)\n"
            + "stored = f32[4,8] dynamic-update-slice(x, both, i, zero)",
            "stored, y",
            {"pipeline_use_tree": False},
            "it has several users, and pipeline_use_tree is off",
        ),
        (
            "pair = f32[2,8] concatenate(part, part), dimensions={0}\n"
            "ar = f32[2,8] all-reduce(pair), to_apply=sum\n"
            "row = f32[1,8] slice(ar), slice={[0:1],[0:8]}\n"
            "stored = f32[4,8] dynamic-update-slice(x, row, i, zero)",
            "stored, y",
            {"process_different_sized_ops": False},
            "%row has another shape than its operand, and process_different_sized_ops is off",
        ),
        (
            REDUCED + "fill = f32[] constant(0)\nrow = f32[1,8] pad(ar, fill), padding=0_0x0_0\n"
            "stored = f32[4,8] dynamic-update-slice(x, row, i, zero)",
            "stored, y",
            {"process_different_sized_ops": False},
            "%fill, which its value is formatted with, is a scalar, and "
            "process_different_sized_ops is off",
        ),
        (
            "ar = f32[4,8] get-tuple-element(p), index=3\n"
            "row = f32[1,8] slice(ar), slice={[0:1],[0:8]}\n"
            "stored = f32[4,8] dynamic-update-slice(x, row, i, zero)",
            "stored, y",
            {"should_process": lambda value: value.name == "ar"},
            "it reads the whole state of the loop, which cannot hold itself for the next trip",
        ),
        # Its uses
        (
            "ar = f32[4,8] all-reduce(z), to_apply=sum\n"
            "stored = f32[4,8] dynamic-update-slice(ar, part, i, zero)",
            "stored, y",
            {},
            "%ar is not what %stored stores",
        ),
        (
            REDUCED + "row = f32[1,8] slice(ar), slice={[0:1],[0:8]}\n"
            "stored = f32[4,8] dynamic-update-slice(x, part, i, zero)",
            "stored, y",
            {},
            "nothing stores it for after the loop",
        ),
        (
            REDUCED + "row = f32[1,8] slice(ar), slice={[0:1],[0:8]}\n"
            "stored = f32[4,8] dynamic-update-slice(x, row, i, zero)",
            "stored, y",
            {"acceptable_formatting": ("reshape", "transpose")},
            "%row, between it and its store, is a slice, which acceptable_formatting excludes",
        ),
        (
            "pair = f32[4,8] negate(z)\nar = f32[4,8] all-reduce(pair), to_apply=sum\n"
            "row = f32[1,8] dynamic-slice(ar, i, zero), dynamic_slice_sizes={1,8}\n"
            "stored = f32[4,8] dynamic-update-slice(x, row, i, zero)",
            "stored, y",
            {},
            "%row, between it and its store, has an index from %i, which depends on the loop's "
            "state",
        ),
        (
            REDUCED + "fresh = token[] after-all()\n"
            "told = token[] outfeed(ar, fresh), outfeed_shape=f32[1,8]",
            "x, y, z, k, told",
            {},
            "%told does not take a token of the loop's state last",
        ),
        (
            REDUCED + "told = token[] outfeed(ar, tok), outfeed_shape=f32[1,8]",
            "x, y, z, k, told",
            {"pipelining_direction": "forward-sink"},
            "%told makes a token of it in every trip",
        ),
        # Its store
        (
            REDUCED + "stored = f32[4,8] dynamic-update-slice(x, ar, k, zero)",
            "stored, y",
            {},
            "index %k of %stored does not follow from the loop counter: it is not a sum, "
            "difference or multiple of it that stays without overflow",
        ),
        (
            REDUCED + STORED,
            "stored, stored",
            {},
            "%stored is more than one element of %next",
        ),
        (
            REDUCED + "f = f32[] constant(0)\nnew = f32[4,8] broadcast(f), dimensions={}\n"
            "stored = f32[4,8] dynamic-update-slice(new, ar, i, zero)",
            "stored, y",
            {},
            "buffer %new of %stored is not an element of the loop's state",
        ),
        (
            REDUCED + "look = f32[4,8] negate(x)\nf = f32[] constant(0)\n"
            "new = f32[4,8] broadcast(f), dimensions={}\n"
            "stored = f32[4,8] dynamic-update-slice(new, ar, i, zero), "
            'frontend_attributes={always_sink="1"}',
            "stored, y",
            {},
            "%x reads in the loop what %stored stores",
        ),
        (
            REDUCED + STORED + "again = f32[4,8] get-tuple-element(p), index=1\n"
            "look = f32[4,8] negate(again)",
            "stored, y",
            {},
            "%again reads the buffer of %stored, too",
        ),
    ],
)
def test_what_is_not_moved_forward(
    body: str, ends: str, options: dict[str, Any], reason: str
) -> None:
    text = loop(body, ends).replace("told, z, k, tok)", "told)")  # that are all elements
    assert reasons(text, **options) == [reason]


@pytest.mark.parametrize(
    ("stored", "ends", "reason"),
    [
        (
            "stored = f32[4,8] dynamic-update-slice(x, ar, place, zero)\n"
            "look = f32[4,8] negate(stored)",
            "look, y",
            "%look reads what %stored stores in",
        ),
        (
            "stored = f32[4,8] dynamic-update-slice(x, ar, place, zero)\n"
            "over = f32[4,8] dynamic-update-slice(stored, part, i, zero)\n"
            "look = f32[4,8] negate(over)",
            "over, look",
            "%over has several users, not the root of the body alone",
        ),
        (
            "far = s32[] add(place, two)\n"
            "stored = f32[4,8] dynamic-update-slice(x, ar, place, zero)",
            "stored, y",
            "the trips' stores %stored may overlap",
        ),
    ],
)
def test_what_a_second_round_does_not_move(stored: str, ends: str, reason: str) -> None:
    """The mark is one that the first round leaves."""
    body = f"""level = s64[] constant(1)
    place = s32[] custom-call(i, level), custom_call_target="InsertedByPreviousStep"
    {REDUCED}{stored}"""
    assert reasons(loop(body, ends), level_to_operate_on=1, last_run=False) == [reason]


BACKWARD: dict[str, Any] = {
    "pipelining_direction": "backward",
    "should_process": ("all-reduce",),
}


@pytest.mark.parametrize(
    ("body", "options", "reason"),
    [
        (
            "tk = token[] after-all()\n"
            "begun = (f32[1,8], u32[], token[]) recv(tk), channel_id=3\n"
            "got = (f32[1,8], token[]) recv-done(begun), channel_id=3\n"
            "row = f32[1,8] get-tuple-element(got), index=0\n"
            "ar = f32[1,8] all-reduce(row), to_apply=sum\n" + STORED,
            BACKWARD,
            "it is computed from what %got receives",
        ),
        (
            "row = f32[1,8] negate(part)\nar = f32[1,8] all-reduce(row), to_apply=sum\n"
            "both = f32[1,8] add(row, ar)\n"
            "stored = f32[4,8] dynamic-update-slice(x, both, i, zero)",
            {**BACKWARD, "should_add_loop_invariant_op_in_chain": False},
            "%both reads %row too, which it is computed from, and "
            "should_add_loop_invariant_op_in_chain is off",
        ),
        (
            REDUCED + STORED,
            {**BACKWARD, "should_process": ("tuple",)},
            "it is the whole state of its loop",
        ),
    ],
)
def test_what_is_not_moved_backward(body: str, options: dict[str, Any], reason: str) -> None:
    assert reasons(loop(body), **options) == [reason]


@pytest.mark.parametrize("options", [{}, BACKWARD])
def test_the_first_of_two_fills_a_loop(options: dict[str, Any]) -> None:
    body = f"""{REDUCED}{STORED}second = f32[1,8] all-reduce(part), to_apply=sum
    other = f32[4,8] dynamic-update-slice(y, second, i, zero)"""
    module, context = parse_module(loop(body, "stored, other")), PassContext()
    given = {**options, "max_pipelining_per_loop": 1}
    assert create_pass("collective-pipeliner", given).run(module, context)
    assert [(r.kind, r.instruction) for r in context.remarks] == [
        ("applied", "ar"),
        ("missed", "second"),
    ]
    assert context.remarks[1].reason == "not pipelined: max_pipelining_per_loop is reached"


def test_a_level_below_zero() -> None:
    with pytest.raises(HloError) as raised:
        create_pass("collective-pipeliner", {"level_to_operate_on": -1})
    assert "option 'level_to_operate_on' takes no negative number, as -1 is" in (
        raised.value.message
    )
