"""The benefit of moving: what counts for it, and what against it."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay
from tests.passes.control_flow.conditional_code_motion.programs import (
    BACK,
    DIFFERENT,
    PAIR,
    PASS,
    V,
    moved,
    program,
    remarks,
    results,
    two,
)

from hloopt.ir import Opcode


def test_an_instruction_with_several_users_stays_beside_each_other_one() -> None:
    text = program(
        f"s = {V} sine(a) n = {V} negate(s) k = {V} floor(n) ROOT all = {PAIR} tuple(n, k)",
        f"s = {V} cosine(b) n = {V} negate(s) d = {V} exponential(b) m = {V} negate(d) "
        f"k = {V} floor(m) ROOT all = {PAIR} tuple(n, k)",
        "",
        f"u = {V} get-tuple-element(h), index=1 ROOT e = {V} {BACK}",
        gives=PAIR,
    )
    assert results(moved(text)) == [["n", "n", "n"], ["n.1", "n.1", "m"]]


def test_groups_that_are_not_worth_it_do_not_count_as_dependents() -> None:
    text = program(
        *two(f"s = {V} {{o}}({{p}}) ROOT all = {PAIR} tuple({{p}}, s)"),
        "",
        f"i = {V} get-tuple-element(h), index=0 k = {V} floor(i) "
        f"j = {V} get-tuple-element(h), index=1 l = {V} negate(j) ROOT u = {V} add(k, l)",
        gives=PAIR,
    )
    opcodes = {i.opcode for i in moved(text).entry.instructions}
    assert Opcode.NEGATE not in opcodes
    assert {Opcode.ADD, Opcode.FLOOR} <= opcodes


def test_a_broadcast_in_a_tuple_is_not_made_anew() -> None:
    outer = f"(({V}))"
    text = program(
        f"s = ({V}) get-tuple-element(a), index=0 d = {V} get-tuple-element(s), index=0 "
        f"ROOT r = {V} sine(d)",
        f"ROOT r = {V} constant({{1,2,3,4}})",
        f"k = f32[] constant(1) w = {V} broadcast(k), dimensions={{}} i = ({V}) tuple(w) "
        f"l = {outer} tuple(i)",
        f"ROOT u = {V} add(h, w)",
        takes=outer,
        arguments="l, l",
    )
    reasons = reasons_to_stay(PASS, text)
    assert "not moved across %h: it has 2 users" in reasons


def test_tuples_alone_do_not_move() -> None:
    text = program(
        f"s = {V} get-tuple-element(a), index=0 ROOT r = {V} sine(s)",
        f"ROOT r = {V} constant({{1,2,3,4}})",
        f"n = {V} reverse(x), dimensions={{0}} l = ({V}) tuple(n)",
        takes=f"({V})",
        arguments="l, l",
    )
    assert remarks(text)["l"] == "moving it has no benefit"
    reasons_to_stay(PASS, text)


def test_the_root_alone_does_not_move() -> None:
    text = program(*two(f"s = {V} {{o}}({{p}}) ROOT r = {V} negate(s)"))
    assert remarks(text)["r"] == "moving it has no benefit"
    reasons_to_stay(PASS, text)


@pytest.mark.parametrize(
    ("after", "moves"),
    [
        (f"k = {V} negate(h) ROOT u = {V} reverse(k), dimensions={{0}}", False),
        (f"k = {V} negate(h) ROOT u = {V} add(k, y)", True),
        (f"k = {V} negate(h) m = {V} reverse(k), dimensions={{0}} ROOT u = {V} add(k, m)", True),
        (f"i = {V} add(h, h) k = {V} negate(i) ROOT u = ({V}) tuple(k)", False),
    ],
    ids=("the same", "others beside it", "several users", "twice"),
)
def test_what_is_read_behind_counts_against_moving_in(after: str, moves: bool) -> None:
    text = program(*DIFFERENT, "", after)
    if moves:
        assert Opcode.NEGATE not in {i.opcode for i in moved(text).entry.instructions}
    else:
        reasons_to_stay(PASS, text)


def test_reading_tuples_is_free() -> None:
    text = program(
        f"s = {V} get-tuple-element(a), index=0 r = {V} reverse(s), dimensions={{0}}",
        f"s = {V} get-tuple-element(b), index=0 r = {V} negate(s)",
        "l = (f32[4]) tuple(x)",
        f"k = (f32[4]) tuple(h) i = {V} get-tuple-element(k), index=0 "
        f"ROOT u = {V} reverse(i), dimensions={{0}}",
        takes=f"({V})",
        arguments="l, l",
    )
    moved(text)


def test_a_part_of_a_copy_does_not_move_without_the_other() -> None:
    pair = f"({V}, {V}, u32[])"
    text = program(
        *two(f"s = {V} {{o}}({{p}}) d = {pair} copy-start(s) r = {V} copy-done(d)"),
    )
    found = remarks(text, search_config="0,99,1,1")
    assert found["r"] == "it has a side effect, or another part"


def test_what_the_roots_read_does_not_count() -> None:
    text = program(
        f"s = {V} sine(a) r = {V} negate(s) d = {V} floor(a) ROOT all = {PAIR} tuple(r, d)",
        f"s = {V} cosine(b) r = {V} negate(s) d = {V} abs(b) ROOT all = {PAIR} tuple(r, d)",
        "",
        f"u = {V} get-tuple-element(h), index=0 ROOT e = {V} {BACK}",
        gives=PAIR,
    )
    assert Opcode.NEGATE in {i.opcode for i in moved(text).entry.instructions}


def test_a_tuple_that_is_taken_apart_counts_for_nothing() -> None:
    text = program(
        *two(f"s = {V} {{o}}({{p}}) n = {V} reverse(s), dimensions={{0}} r = {PAIR} tuple(n, s)"),
        "",
        f"i = {V} get-tuple-element(h), index=0 ROOT u = {V} negate(i)",
        gives=PAIR,
    )
    assert remarks(text)["h"] == "moving it has no benefit"
    reasons_to_stay(PASS, text)
