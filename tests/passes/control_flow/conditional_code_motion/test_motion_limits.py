"""Conditions on groups as a whole, and on conditionals, each with its remark."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay
from tests.passes.control_flow.conditional_code_motion.programs import (
    ARRAY,
    ORDER,
    PAIR,
    PASS,
    V,
    ends,
    opcodes,
    program,
    remarks,
    remarks_without_running,
    stays,
    two,
)

from hloopt.ir import Opcode


def test_what_has_no_benefit_stays() -> None:
    text = program(*ends("r = f32[4] add(s, z)"), "", "ROOT u = f32[4] add(h, y)")
    text = text.replace("z = f32[4]{0} abs(b)", "z = f32[4]{0} floor(b)")
    stays(text, "all", "moving it has no benefit")
    assert Opcode.ADD in opcodes(
        text.replace("u = f32[4] add(h, y)", "u = f32[4] reverse(h), dimensions={0}")
    )


@pytest.mark.parametrize(
    ("operand", "tells"),
    [
        ("slice(w), slice={[0:4]}", True),
        ("slice(w), slice={[0:4]}", False),
        ("reduce(m, z), dimensions={1}, to_apply=ad", False),
    ],
)
def test_what_takes_too_much_memory_stays(operand: str, tells: bool) -> None:
    told = "k = token[] after-all() o = token[] outfeed(a, k), outfeed_shape=f32[4]{0} "
    before = (
        "w = f32[1048576] iota(), iota_dimension=0 z = f32[] constant(0) "
        f"m = f32[4,262144] iota(), iota_dimension=1 n = f32[4] {operand}"
    )
    text = program((told if tells else "") + ARRAY[0], ARRAY[1], before, arguments="n, y")
    opcode = operand.partition("(")[0]
    if "reduce" in operand or tells:
        average = 4194304 // 2 if "reduce" in operand else 4194304
        reason = f"moving it takes {average} more bytes per operation, and 2048000 are allowed"
        reasons_to_stay(PASS, text, memory_increase_allowance=4000)
        assert remarks_without_running(text, memory_increase_allowance=4000)["n"] == reason
    enough = average // 512 if "reduce" in operand or tells else 0
    assert opcode not in opcodes(text, memory_increase_allowance=enough)


def test_what_a_reduction_gives_need_not_be_passed() -> None:
    big = "f32[524288]"
    text = program(
        f"s = {V} slice(a), slice={{[0:4]}} ROOT r = {V} sine(s)",
        f"ROOT r = {V} constant({{1,2,3,4}})",
        "m = f32[524288,2] iota(), iota_dimension=1 z = f32[] constant(0) "
        f"n = {big} reduce(m, z), dimensions={{1}}, to_apply=ad",
        takes=big,
        arguments="n, n",
    )
    # 4 MiB go in, 2 MiB do not, and two operations move.
    reason = "moving it takes 1048576 more bytes per operation, and 0 are allowed"
    assert remarks(text, memory_increase_allowance=0)["n"] == reason


def test_one_direction_wins() -> None:
    text = program(*ends("r = f32[4] negate(s)"), "", "ROOT u = f32[4] abs(h)")
    found = remarks(text)
    assert found["all"] == "moving other operations into the branches has as much benefit"
    assert Opcode.ABS not in opcodes(text)
    out = text.replace("abs(h)", "reverse(h), dimensions={0}")
    assert Opcode.NEGATE in opcodes(out)


def test_the_other_direction_stays() -> None:
    text = program(
        *two(
            f"s = {V} get-tuple-element(a), index=0 d = {V} get-tuple-element(a), index=1 "
            f"n = {V} negate(s) m = {V} {{o}}(d) ROOT all = {PAIR} tuple(n, m)"
        ),
        f"l = {PAIR} tuple(x, y)",
        f"i = {V} get-tuple-element(h), index=0 w = {V} reverse(i), dimensions={{0}} "
        f"j = {V} get-tuple-element(h), index=1 k = {V} floor(j) ROOT u = {V} subtract(w, k)",
        takes=PAIR,
        gives=PAIR,
        arguments="l, l",
    ).replace("b = ", "a = ")
    assert remarks(text)["j"] == "moving other operations out of the branches has as much benefit"
    assert {Opcode.FLOOR, Opcode.NEGATE} <= opcodes(text)


def test_what_is_as_good_where_it_is_stays() -> None:
    gives = f"({V}, {V}, {V})"
    text = program(
        f"s = {V} sine(a) d = {V} floor(s) n = {V} negate(s) ROOT all = {gives} tuple(s, d, n)",
        f"s = {V} cosine(b) d = {V} negate(s) n = {V} floor(s) ROOT all = {gives} tuple(s, d, n)",
        "w = f32[] constant(1) v = f32[] negate(w) z = f32[] floor(v) ",
        f"i = {V} get-tuple-element(h), index=0 k = {V} abs(i) "
        f"ROOT u = ({V}, {V}, {V}, f32[], f32[]) tuple(k, x, y, v, z)",
        gives=gives,
    )
    stays(text, "i", "leaving it alone has as much benefit")


@pytest.mark.parametrize("last", ["f32[4] add(n, h)", "(f32[4], f32[4]) tuple(n, h)"])
def test_an_array_with_several_users_keeps_them(last: str) -> None:
    text = program(*ARRAY, "", f"n = f32[4] negate(h) ROOT u = {last}")
    reason = "nothing moves in from behind it: it gives an array to 2 users"
    assert reason in reasons_to_stay(PASS, text)


def test_nothing_moves_into_what_gives_the_result_of_its_computation() -> None:
    text = program(*ARRAY, "", "n = f32[4] negate(h)").replace("  h = ", "  ROOT h = ")
    reason = "nothing moves in from behind it: its result is that of %e"
    assert reason in reasons_to_stay(PASS, text)


def test_a_whole_result_that_is_used_keeps_all() -> None:
    text = program(*ends("r = f32[4] negate(s)"), "", "ROOT u = (f32[4], (f32[4])) tuple(h, c)")
    assert reasons_to_stay(PASS, text) == ["%u uses its whole result"]


def test_a_reader_with_control_dependencies_keeps_all() -> None:
    text = program(*ends("r = f32[4] negate(s)"), "z = f32[4] abs(x)")
    assert Opcode.NEGATE in opcodes(text)
    text = text.replace("get-tuple-element(c), index=0", f"get-tuple-element(c), index=0{ORDER}")
    assert reasons_to_stay(PASS, text) == ["%h, which reads it, has control dependencies"]


def test_what_runs_asynchronously_stays() -> None:
    text = f"""HloModule m
    t {{ a = {V} parameter(0) s = {V} sine(a) r = {V} negate(s) ROOT g = ({V}) tuple(r) }}
    f {{ b = {V} parameter(0) s = {V} cosine(b) r = {V} negate(s) ROOT g = ({V}) tuple(r) }}
    run {{
      q = pred[] parameter(0)
      x = {V} parameter(1)
      ROOT c = ({V}) conditional(q, x, x), true_computation=t, false_computation=f
    }}
    ENTRY e {{
      q = pred[] parameter(0)
      x = {V} parameter(1)
      s = ((pred[], {V}), ({V}), s32[]) async-start(q, x), calls=run
      ROOT d = ({V}) async-done(s)
    }}
    """
    assert reasons_to_stay(PASS, text) == ["it runs asynchronously"]
