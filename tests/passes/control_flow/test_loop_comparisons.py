"""Comparisons of counters, against all the values that the counter takes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product

import pytest
from tests.properties.consistency import assert_consistent

from hloopt.analysis.loops.trip_count import loop_trips
from hloopt.ir import Instruction, Module, Opcode
from hloopt.passes.control_flow.while_loop_simplifier.comparisons import simplify_comparisons
from hloopt.text import parse_module
from hloopt.verifier import verify_module

HOLDS: dict[str, Callable[[int, int], bool]] = {
    "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge,
    "EQ": operator.eq, "NE": operator.ne,
}  # fmt: skip
Question = tuple[str, int, int, bool]
"""A direction, a constant added to the counter, a limit, whether the counter is on the right."""


def loop_of(
    questions: list[Question],
    *,
    start: str,
    step: int,
    limit: int,
    kind: str = "s32",
    goes_on: str = "LT",
    body: str = "",
    hidden: bool = False,
    reads: str = "",
) -> Instruction:
    """A loop that asks each question in its body: `c.0`, `c.1`, …

    The answers are read in the body, or with `hidden` only handed to the next trip.
    """  # fmt: skip
    lines: list[str] = []
    for number, (direction, offset, against, is_right) in enumerate(questions):
        lines.append(f"o.{number} = {kind}[] constant({offset})")
        lines.append(f"v.{number} = {kind}[] add(i, o.{number})")
        lines.append(f"k.{number} = {kind}[] constant({against})")
        sides = f"k.{number}, v.{number}" if is_right else f"v.{number}, k.{number}"
        lines.append(f"c.{number} = pred[] compare({sides}), direction={direction}")
        if not hidden:
            lines.append(f"n.{number} = pred[] not(c.{number})")
    taken = "c" if hidden else "n"
    values = ", ".join(["next", *(f"{taken}.{number}" for number in range(len(questions)))])
    state = f"({', '.join([f'{kind}[]'] + ['pred[]'] * len(questions))})"
    nos = ", ".join(["start", *["no"] * len(questions)])
    newline = "\n  "
    text = f"""HloModule m
body {{
  p = {state} parameter(0)
  i = {kind}[] get-tuple-element(p), index=0
  by = {kind}[] constant({step})
  next = {kind}[] add(i, by)
  {newline.join(lines)}
  {body}
  ROOT t = {state} tuple({values})
}}
condition {{
  q = {state} parameter(0)
  j = {kind}[] get-tuple-element(q), index=0
  limit = {kind}[] constant({limit})
  {reads}
  ROOT goes_on = pred[] compare(j, limit), direction={goes_on}
}}
ENTRY e {{
  start = {kind}[] {start}
  no = pred[] constant(false)
  state = {state} tuple({nos})
  ROOT w = {state} while(state), condition=condition, body=body
}}
"""
    module = parse_module(text)
    assert verify_module(module) == []
    return module.entry.root


def answers(loop: Instruction, count: int, *, hidden: bool = False) -> list[bool | None]:
    """The constants that comparisons became, None for those that stay; after a simplification."""
    found = simplify_comparisons(loop, lambda: True, loop_trips(loop))
    module = loop.parent.module
    assert verify_module(module) == []
    assert_consistent(module)
    values: list[bool | None] = []
    for number in range(count):
        value = loop.called[0].root.operands[number + 1]
        value = value if hidden else value.operands[0]
        is_constant = value.opcode is Opcode.CONSTANT
        values.append(value.payload == "true" if is_constant else None)
        assert value.name == f"c.{number}" or is_constant
    assert found == len(values) - values.count(None)
    return values


def expected(question: Question, values: list[int], bits: range) -> bool | None:
    direction, offset, limit, is_right = question
    seen = [value + offset for value in values]
    if any(value not in bits for value in seen):
        return None
    if direction in ("EQ", "NE") and min(seen) <= limit <= max(seen):
        return None  # not looked into, whichever values lie between
    holds = HOLDS[direction]
    found = {holds(limit, value) if is_right else holds(value, limit) for value in seen}
    return found.pop() if len(found) == 1 else None


LOOPS = [
    # First value, step, limit, direction.
    *((0, 1, 5, "LT"), (2, 3, 8, "LE"), (5, -1, 0, "GT"), (6, -2, 1, "GE"), (3, 1, 4, "LT")),
    *((1, 2, 7, "NE"), (0, 1, 2, "LT")),
]


@pytest.mark.parametrize(("start", "step", "limit", "goes_on"), LOOPS)
@pytest.mark.parametrize("hidden", [False, True])
def test_a_comparison_is_a_constant_where_all_values_of_the_counter_agree(
    start: int, step: int, limit: int, goes_on: str, hidden: bool
) -> None:
    values: list[int] = []
    while HOLDS[goes_on](start + step * len(values), limit):
        values.append(start + step * len(values))
    if hidden and len(values) > 1:
        values = values[1:]  # the answer of the first trip is overwritten before it can be read
    questions = [*product(HOLDS, (0, -1, 2), range(-2, 10), (False, True))]
    loop = loop_of(questions, start=f"constant({start})", step=step, limit=limit,
                   goes_on=goes_on, hidden=hidden)  # fmt: skip
    assert answers(loop, len(questions), hidden=hidden) == [
        expected(question, values, range(-(2**31), 2**31)) for question in questions
    ]


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize(("kind", "bits"), [("u8", range(256)), ("s8", range(-128, 128))])
def test_a_sum_that_may_wrap_around_is_not_compared(kind: str, bits: range, is_down: bool) -> None:
    top = bits[-1]
    offsets = (0, 1, 2, 3)
    questions = [*product(("LT", "GE"), offsets, (0, top), (False, True))]
    values = [*range(top - 5, top - 1)]
    loop = loop_of(questions, start=f"constant({top - 5})", step=1, limit=top - 1, kind=kind)
    if is_down:
        values = values[::-1]
        loop = loop_of(
            questions, start=f"constant({values[0]})", step=top if kind == "u8" else -1,
            limit=top - 6, kind=kind, goes_on="GT",
        )  # fmt: skip
    assert answers(loop, len(questions)) == [
        expected(question, values, bits) for question in questions
    ]


ALWAYS: Question = ("GE", 0, 0, False)


@pytest.mark.parametrize(
    ("start", "limit"), [("parameter(0)", 5), ("constant(5)", 5), ("constant(7)", 5)]
)
def test_a_loop_of_no_trip_or_an_unknown_start_keeps_its_comparisons(
    start: str, limit: int
) -> None:
    assert answers(loop_of([ALWAYS], start=start, step=1, limit=limit), 1) == [None]


def test_a_counter_that_wraps_around_keeps_its_comparisons() -> None:
    loop = loop_of([ALWAYS], start="constant(250)", step=10, limit=100, kind="u8", goes_on="GE")
    assert loop_trips(loop).computed == 1
    assert answers(loop, 1) == [None]


def test_comparisons_of_other_values_stay() -> None:
    loop = loop_of([ALWAYS, ALWAYS], start="constant(0)", step=1, limit=5)
    body = loop.called[0]
    first = next(i for i in body.instructions if i.name == "c.0")
    constant = next(i for i in body.instructions if i.name == "k.0")
    first.replace_operand(0, constant)
    second = next(i for i in body.instructions if i.name == "c.1")
    second.replace_operand(1, next(i for i in body.instructions if i.name == "i"))
    assert answers(loop, 2) == [None, None]


def test_comparisons_that_nothing_reads_are_not_counted() -> None:
    unread = "unread = pred[] compare(i, by), direction=GE"
    loop = loop_of([], start="constant(1)", step=1, limit=5, body=unread)
    assert simplify_comparisons(loop, lambda: True, loop_trips(loop)) == 0
    assert loop.parent.module.is_pristine


@pytest.mark.parametrize(
    "more",
    [
        {"body": "r = pred[] get-tuple-element(p), index=1"},
        {"reads": "r = pred[] get-tuple-element(q), index=1"},
        {"body": "r = pred[] not(c.0)"},
        {"reads": "whole = (s32[], pred[]) copy(q)"},
    ],
)
def test_the_first_trip_counts_where_its_answer_may_be_read(more: dict[str, str]) -> None:
    later: Question = ("GT", 0, 0, False)  # false in the first trip only
    loop = loop_of([later], start="constant(0)", step=1, limit=5, hidden=True, **more)
    assert answers(loop, 1, hidden=True) == [None]


def test_nothing_changes_where_that_may_not_be() -> None:
    loop = loop_of([ALWAYS], start="constant(0)", step=1, limit=5)
    assert simplify_comparisons(loop, lambda: False, loop_trips(loop)) == 0
    assert loop.parent.module.is_pristine


def test_nothing_is_asked_where_nothing_can_change() -> None:
    loop = loop_of([("EQ", 0, 2, False)], start="constant(0)", step=1, limit=5)
    asked: list[Module] = []

    def may_apply() -> bool:
        asked.append(loop.parent.module)
        return True

    assert simplify_comparisons(loop, may_apply, loop_trips(loop)) == 0
    assert asked == []
