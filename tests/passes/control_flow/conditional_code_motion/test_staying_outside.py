"""Conditions on users and operands of a conditional, each with its remark."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay
from tests.passes.control_flow.conditional_code_motion.programs import (
    ARRAY,
    BOTH,
    NEGATED,
    ORDER,
    PAIR,
    PASS,
    V,
    ends,
    moved,
    opcodes,
    program,
    remarks,
    remarks_without_running,
    stays,
)

from hloopt.ir import Opcode

COMMUNICATES = "it communicates, which not all devices may do in a branch"


def test_a_user_of_something_else_stays_behind() -> None:
    text = program(*ends("r = f32[4] reverse(s), dimensions={0}"), "", "ROOT u = f32[4] add(h, y)")
    stays(text, "u", "not all of its operands move")
    assert Opcode.ADD not in opcodes(text.replace("add(h, y)", "add(h, h)"))


def test_a_user_of_several_results_moves_once_all_of_them_do() -> None:
    text = program(
        *BOTH, "", f"i = {V} get-tuple-element(h), index=0 k = {V} floor(i) "
        f"j = {V} get-tuple-element(h), index=1 l = {V} negate(j) ROOT u = {V} add(k, l)",
        gives=PAIR,
    )  # fmt: skip
    assert Opcode.ADD not in opcodes(text)
    assert "u" not in remarks(text)
    assert remarks(text.replace("floor(i)", "reverse(i), dimensions={0}"))["u"] == (
        "not all of its operands move"
    )


@pytest.mark.parametrize("channel", ["channel_id=1, ", ""])
def test_communication_does_not_move_into_a_branch(channel: str) -> None:
    reduced = f"all-reduce(h), {channel}replica_groups={{}}, to_apply=ad"
    behind = f"n = {V} {reduced} ROOT u = {V} reverse(n), dimensions={{0}}"
    text = program(*ends("r = f32[4] reverse(s), dimensions={0}"), "", behind)
    stays(text, "n", COMMUNICATES)


def test_communication_stays_before_the_conditional() -> None:
    text = program(*ARRAY, "n = f32[4] all-reduce(x), replica_groups={}, to_apply=ad",
                   arguments="n, y")  # fmt: skip
    stays(text, "n", COMMUNICATES)


def test_a_broadcast_does_not_move_in_from_behind() -> None:
    text = program(*ARRAY, "", "ROOT u = f32[4,2] broadcast(h), dimensions={0}")
    stays(text, "u", "it would make the result of the branches larger")


def test_the_result_of_the_computation_stays_a_tuple_there() -> None:
    text = program(*ARRAY, "", "n = f32[4] negate(h) ROOT u = (f32[4]) tuple(n)")
    stays(text, "u", "it is the result of %e")


@pytest.mark.parametrize("where", ["inside", "behind", "before"])
@pytest.mark.parametrize("order", [ORDER, ""])
def test_control_dependencies_keep_an_instruction(where: str, order: str) -> None:
    if where == "inside":
        name, text = "r", program(*ends(f"r = {V} negate(s){ORDER}", order=order))
    elif where == "behind":
        name, text = "u", program(*ARRAY, f"z = {V} abs(x)", NEGATED + order)
    else:
        before = f"z = {V} abs(x) n = {V} negate(x){order}"
        name, text = "n", program(*ARRAY, before, arguments="n, y")
    if order:
        stays(text, name, "it has control dependencies")
    else:
        moved(text)


@pytest.mark.parametrize(
    ("before", "name", "reason"),
    [
        ("l = (f32[4]) tuple(x) n = f32[4] get-tuple-element(l), index=0", "n",
         "it only reads a tuple"),
        ("n = f32[4] negate(x)", "n", None),
        ("n = f32[4] rng(k, l), distribution=rng_uniform", "n", "it has a side effect"),
    ],
)  # fmt: skip
def test_some_operands_stay(before: str, name: str, reason: str | None) -> None:
    limits = "k = f32[] constant(0) l = f32[] constant(1) " if "rng" in before else ""
    text = program(*ARRAY, limits + before, arguments="n, y")
    if reason is None:
        assert Opcode.NEGATE not in opcodes(text)
    else:
        reasons_to_stay(PASS, text)
        assert remarks_without_running(text)[name] == reason


def test_a_tuple_with_a_sharding_stays() -> None:
    text = program(
        "i = f32[4] get-tuple-element(a), index=0 ROOT r = f32[4] sine(i)",
        "j = f32[4] get-tuple-element(b), index=0 ROOT r = f32[4] cosine(j)",
        "k = f32[4] negate(x) n = (f32[4]) tuple(k), sharding={{replicated}} "
        "l = (f32[4]) tuple(y), sharding={{replicated}}",
        takes=f"({V})",
        arguments="n, l",
    )
    stays(text, "n", "it is a tuple with a sharding")
    assert Opcode.NEGATE not in opcodes(text.replace(", sharding={{replicated}}", ""))


def test_an_operand_with_several_users_stays_even_once_all_are_known() -> None:
    text = program(
        *ARRAY,
        "n = f32[4] negate(x) k = f32[4] floor(n) l = f32[4] abs(n)",
        arguments="k, l",
    )
    assert remarks(text)["n"] == "it has several users"
    assert opcodes(text) >= {Opcode.NEGATE}


def test_what_decides_which_branch_runs_stays() -> None:
    text = """HloModule m
    t { a = pred[] parameter(0) ROOT r = pred[] not(a) }
    f { b = pred[] parameter(0) ROOT r = pred[] constant(true) }
    ENTRY e {
      x = pred[] parameter(0)
      n = pred[] not(x)
      ROOT c = pred[] conditional(n, n, x), true_computation=t, false_computation=f
    }
    """
    stays(text, "n", "it decides which branch runs")
    assert Opcode.NOT not in opcodes(text.replace("conditional(n,", "conditional(x,"))


def test_a_broadcast_that_others_use_is_made_anew_in_a_branch() -> None:
    before = "m = f32[] constant(2) w = f32[4] broadcast(m), dimensions={}"
    text = program(*ARRAY, f"{before} n = f32[4] add(w, x) k = f32[4] negate(n)",
                   "k.2 = f32[4] add(h, w) ROOT u = f32[4] reverse(k.2), dimensions={0}",
                   arguments="k, y")  # fmt: skip
    module = moved(text)
    assert Opcode.BROADCAST in {i.opcode for i in module["h"].called[0].instructions}
    assert Opcode.BROADCAST in {i.opcode for i in module.entry.instructions}
