"""Replacing operands: few or many, one by one or all at once, the edges stay right."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hloopt.ir import Instruction, Opcode
from hloopt.ir.indexed_operands import MANY_OPERANDS, operand_numbers
from hloopt.ir.tuples import make_tuple
from hloopt.text import parse_module

CONSTANTS = 6
NUMBER = st.integers(0, CONSTANTS - 1)


def constants() -> list[Instruction]:
    lines = "\n".join(f"c{number} = s32[] constant({number})" for number in range(CONSTANTS))
    text = f"HloModule m\nENTRY e {{\n{lines}\nROOT r = s32[] negate(c0)\n}}"
    return list(parse_module(text).entry.instructions)[:CONSTANTS]


@given(
    first=st.lists(NUMBER, min_size=1, max_size=8),
    repeats=st.sampled_from((1, MANY_OPERANDS)),
    steps=st.lists(st.tuples(st.sampled_from(("all", "exchange", "one", "set")), NUMBER, NUMBER)),
)
def test_operands_and_users_agree_after_any_replacements(
    first: list[int], repeats: int, steps: list[tuple[str, int, int]]
) -> None:
    values = constants()
    parent = values[0].parent
    expected = [values[number] for number in first] * repeats
    user = make_tuple(parent, expected)
    for step, number, other in steps:
        old, new = values[number], values[other]
        if step == "one":
            place = number % len(expected)
            expected[place] = new
            user.replace_operand(place, new)
        elif step == "set":
            expected = expected[::-1]
            user.set_operands(expected)
        elif old in expected and old is not new:
            given_before = user.operands if len(expected) < MANY_OPERANDS else None
            copy = list(user.operands)
            expected = [new if operand is old else operand for operand in expected]
            if step == "all":
                old.replace_all_uses_with(new)
            else:
                user.exchange_operand(old, new)
            assert given_before in (None, copy)
        assert user.operands == expected
        for value in values:
            assert (user in value.users) == (value in expected)
            numbers = [n for n, operand in enumerate(expected) if operand is value]
            assert operand_numbers(user, value) == numbers


def test_many_operands_are_not_copied_for_each_replacement() -> None:
    values = constants()
    parent = values[0].parent
    elements = [parent.add(Opcode.NEGATE, values[0].shape, [values[0]]) for _ in range(1000)]
    whole = make_tuple(parent, elements)
    elements[0].replace_all_uses_with(values[1])
    operands = whole.operands
    for element in elements[1:]:
        element.replace_all_uses_with(values[1])
    assert whole.operands is operands
    assert operands == [values[1]] * len(elements)


def test_users_nobody_has_asked_for_are_right_after_an_operand_is_exchanged() -> None:
    entry = parse_module(
        "HloModule m\n\nENTRY %e (x: s32[], y: s32[]) -> s32[] {\n"
        "  %x = s32[] parameter(0)\n  %y = s32[] parameter(1)\n"
        "  ROOT %sum = s32[] add(%x, %x)\n}\n"
    ).entry
    x, y, total = entry.instructions
    total.exchange_operand(x, y)
    assert total.operands == [y, y]
    assert (list(x.users), list(y.users)) == ([], [total])
