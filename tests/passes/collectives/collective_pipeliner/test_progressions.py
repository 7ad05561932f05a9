"""Values of a loop's body that grow by the same amount in every trip, and those that do not."""

from __future__ import annotations

import random

import pytest

from hloopt.passes.collectives.collective_pipeliner.counted_loop import counted_loop
from hloopt.passes.collectives.collective_pipeliner.progressions import Progressions
from hloopt.text import parse_module

Found = tuple[int, int] | None

TEXT = """HloModule m
body {{
  p = {state} parameter(0)
  i = {kind}[] get-tuple-element(p), index=0
  kept = {kind}[] get-tuple-element(p), index=1
  lag = {kind}[] get-tuple-element(p), index=2
  lag.lag = {kind}[] get-tuple-element(p), index=3
  flag = pred[] get-tuple-element(p), index=4
  real = f32[] get-tuple-element(p), index=5
{body}
  step = {kind}[] constant({step})
  j = {kind}[] add(i, step)
  ROOT next = tuple(j, kept, {leader}, lag, flag, real)
}}
condition {{
  q = {state} parameter(0)
  k = {kind}[] get-tuple-element(q), index=0
  n = {kind}[] constant({limit})
  ROOT less = pred[] compare(k, n), direction={direction}
}}
ENTRY main {{
  begin = {kind}[] constant({start})
  seven = {kind}[] constant(7)
  before = {kind}[] constant({lag})
  before.that = {kind}[] constant({lag_lag})
  truth = pred[] constant(true)
  one = f32[] constant(1)
  init = tuple(begin, seven, before, before.that, truth, one)
  ROOT w = {state} while(init), condition=condition, body=body
}}
"""


def progressions(
    lines: list[str],
    *,
    kind: str = "s32",
    start: int = 2,
    step: int = 3,
    limit: int = 14,
    direction: str = "LT",
    leader: str = "i",
    lags: tuple[int, int] = (-1, -4),
    with_lags: bool = False,
    asked: str | None = None,
) -> dict[str, Found]:
    """First value and step of the values of a body, or one; by default i is 2, 5, 8 and 11."""
    text = TEXT.format(
        kind=kind,
        state=f"({', '.join([f'{kind}[]'] * 4)}, pred[], f32[])",
        start=start,
        step=step,
        limit=limit,
        direction=direction,
        leader=leader,
        lag=lags[0],
        lag_lag=lags[1],
        body="\n".join(f"  {line}" for line in lines),
    )
    loop = counted_loop(parse_module(text).entry.root)
    found = Progressions(loop, with_lags=with_lags)
    values = loop.body.instructions
    return {i.name: found.of(i) for i in values if asked in (None, i.name)}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["x = s32[] add(i, kept)"], (9, 3)),
        (["x = s32[] subtract(i, kept)"], (-5, 3)),
        (["x = s32[] subtract(kept, i)"], (5, -3)),
        (["x = s32[] negate(i)"], (-2, -3)),
        (["x = s32[] multiply(i, kept)"], (14, 21)),
        (["x = s32[] multiply(kept, i)"], (14, 21)),
        (["x = s32[] multiply(i, i)"], None),
        (["y = s32[] add(i, i)", "x = s32[] multiply(y, kept)"], (28, 42)),
        (["x = s32[] constant(-6)"], (-6, 0)),
        (["y = s32[] constant(5)", "x = s32[] copy(y)"], (5, 0)),
        (["x = s32[] copy(i)"], (2, 3)),
        (["y = s32[] copy(i)", "x = s32[] add(y, kept)"], (9, 3)),
        (["y = s32[] maximum(i, kept)", "x = s32[] copy(y)"], None),
        (["x = s32[] maximum(i, kept)"], None),
        (["y = s32[] maximum(i, kept)", "x = s32[] add(y, kept)"], None),
        (["y = s32[] maximum(i, kept)", "x = s32[] add(kept, y)"], None),
        (["y = s32[] maximum(i, kept)", "x = s32[] negate(y)"], None),
        (["y = s32[] maximum(i, kept)", "x = s32[] multiply(kept, y)"], None),
        (["y = s32[1] reshape(i)", "x = s32[] reshape(y)"], None),
        (["y = s32[1] constant({4})", "x = s32[] reshape(y)"], (4, 0)),
        (["x = pred[] constant(true)"], None),
        (["y = pred[2] constant({1, 1})", "x = pred[2] compare(y, y), direction=GE"], None),
        (["y = pred[] constant(true)", "x = pred[] compare(y, y), direction=GE"], None),
        (["y = f32[] constant(1)", "x = pred[] compare(y, real), direction=GE"], None),
        (["x = f32[] add(real, real)"], None),
        (["y = s32[2] constant({1, 2})", "x = s32[2] add(y, y)"], None),
        (["x = s32[] add(lag, kept)"], None),
    ],
)
def test_arithmetic_on_the_counter(lines: list[str], expected: Found) -> None:
    assert progressions(lines)["x"] == expected


@pytest.mark.parametrize(
    ("compare", "expected"),
    [
        ("compare(i, last), direction=LE", 1),
        ("compare(i, last), direction=LT", None),  # not in the last trip
        ("compare(i, last), direction=GT", 0),
        ("compare(i, last), direction=GE", None),
        ("compare(last, i), direction=GE", 1),
        ("compare(last, i), direction=LT", 0),
        ("compare(i, first), direction=GE", 1),
        ("compare(i, first), direction=GT", None),
        ("compare(first, i), direction=LE", 1),
        ("compare(first, i), direction=GT", 0),
        ("compare(i, other), direction=NE", None),  # in between it might be equal
        ("compare(i, other), direction=EQ", None),
        ("compare(first, other), direction=LT", 0),
        ("compare(i, i), direction=GE", 1),
        ("compare(larger, i), direction=GE", None),
        ("compare(i, larger), direction=GE", None),
    ],
)
def test_comparisons_that_come_out_the_same_in_all_trips(
    compare: str, expected: int | None
) -> None:
    numbers = [
        "first = s32[] constant(2)",
        "last = s32[] constant(11)",
        "other = s32[] constant(-7)",
        "larger = s32[] maximum(i, other)",
    ]
    choice = "y = s32[] select(x, i, first)"
    found = progressions([*numbers, f"x = pred[] {compare}", choice])
    assert found["x"] == (None if expected is None else (expected, 0))
    assert found["y"] == (None if expected is None else ((2, 3) if expected else (2, 0)))


def test_a_choice_that_changes_is_not_known() -> None:
    """Not even where both sides are, and what is not chosen need not be known."""
    lines = [
        "eight = s32[] constant(8)",
        "early = pred[] compare(i, eight), direction=LT",
        "x = s32[] select(early, i, i)",
        "never = pred[] compare(i, i), direction=GT",
        "square = s32[] multiply(i, i)",
        "y = s32[] select(never, square, i)",
        "z = s32[] select(never, i, square)",
        "v = s32[] select(flag, i, square)",
    ]
    found = progressions(lines)
    assert (found["x"], found["y"], found["z"]) == (None, (2, 3), None)
    assert found["v"] is None


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        ("s8", 116, (118, 3)),  # to 127 in the last trip
        ("s8", 117, None),
        ("s8", -128, (-126, 3)),
        ("u8", 244, (246, 3)),
        ("u8", 245, None),
    ],
)
def test_values_at_the_end_of_their_type(kind: str, number: int, expected: Found) -> None:
    lines = [f"c = {kind}[] constant({number})", f"x = {kind}[] add(i, c)"]
    assert progressions(lines, kind=kind, lags=(0, 0))["x"] == expected


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [("s8", 126, (-126, 0)), ("u8", 2, (0, 3)), ("u8", 3, None), ("s8", -128, None)],
)
def test_values_at_the_other_end_of_their_type(kind: str, number: int, expected: Found) -> None:
    """A counter that overflows in the first trip only is not known either."""
    lines = [f"c = {kind}[] constant({number})"]
    lines += ["x = s8[] negate(c)"] if expected == (-126, 0) else [f"x = {kind}[] subtract(i, c)"]
    assert progressions(lines, kind=kind, lags=(0, 0))["x"] == expected


@pytest.mark.parametrize(
    ("leader", "lags", "with_lags", "expected"),
    [
        ("i", (-1, -4), True, ((-1, 3), (-4, 3))),
        ("i", (-1, -4), False, (None, None)),
        ("i", (-1, -3), True, ((-1, 3), None)),
        ("i", (2, -1), True, (None, None)),
        ("i", (5, -4), True, (None, None)),
        ("j", (2, -1), True, ((2, 3), (-1, 3))),
        ("lag.lag", (2, 2), True, (None, None)),  # they change places
    ],
)
def test_elements_that_lag_a_trip_behind(
    leader: str, lags: tuple[int, int], with_lags: bool, expected: tuple[Found, Found]
) -> None:
    """Only later rounds look for them: earlier ones make them."""
    found = progressions([], leader=leader, lags=lags, with_lags=with_lags)
    assert (found["lag"], found["lag.lag"]) == expected
    assert found["kept"] == (7, 0)
    assert found["i"] == (2, 3)


def test_marks_of_earlier_rounds_hand_values_on() -> None:
    lines = [
        "level = s64[] constant(1)",
        'x = s32[] custom-call(i, level), custom_call_target="InsertedByPreviousStep"',
        'y = s32[] custom-call(i, level), custom_call_target="other"',
    ]
    found = progressions(lines)
    assert (found["x"], found["y"]) == ((2, 3), None)


@pytest.mark.parametrize(("length", "is_known"), [(127, True), (128, False), (300, False)])
def test_no_more_than_256_instructions_are_looked_at(length: int, is_known: bool) -> None:
    """Each of a chain is looked at before and after its operand is, the first one once."""
    lines = ["x1 = s32[] negate(i)"]
    lines += [f"x{n} = s32[] negate(x{n - 1})" for n in range(2, length + 1)]
    found = progressions(lines, asked=f"x{length}")
    sign = (-1) ** length
    assert found == {f"x{length}": (2 * sign, 3 * sign) if is_known else None}


@pytest.mark.parametrize(
    ("start", "step", "limit", "direction"),
    [(2, 3, 14, "LT"), (0, 1, 7, "LE"), (9, -2, -1, "GT"), (-5, 1, -3, "LT")],
)
def test_random_expressions_against_all_trips(
    start: int, step: int, limit: int, direction: str
) -> None:
    """Known counters are right in every trip; sums and differences without overflow are known."""
    dice = random.Random(f"{start} {step}")
    counter = [start]
    holds = {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__}[direction]
    while holds(counter[-1] + step, limit):
        counter.append(counter[-1] + step)
    trips = len(counter)
    exact: dict[str, list[int]] = {"i": counter, "kept": [7] * trips}
    plain = {"i", "kept"}
    lines: list[str] = []
    for number in range(120):
        name, opcode = f"v{number}", dice.choice(["add", "subtract", "multiply", "negate", "const"])
        if opcode == "const":
            value = dice.randint(-3, 3)
            lines.append(f"{name} = s8[] constant({value})")
            exact[name] = [value] * trips
            plain.add(name)
            continue
        a, b = (dice.choice(list(exact)[-30:]) for _ in range(2))
        operands = a if opcode == "negate" else f"{a}, {b}"
        lines.append(f"{name} = s8[] {opcode}({operands})")
        pairs = zip(exact[a], exact[b], strict=True)
        results = {
            "add": lambda x, y: x + y,
            "subtract": lambda x, y: x - y,
            "multiply": lambda x, y: x * y,
            "negate": lambda x, y: -x,
        }
        exact[name] = [(results[opcode](x, y) + 128) % 256 - 128 for x, y in pairs]
        whole = [results[opcode](x, y) for x, y in zip(exact[a], exact[b], strict=True)]
        used = {a} if opcode == "negate" else {a, b}
        if opcode != "multiply" and whole == exact[name] and used <= plain:
            plain.add(name)
    found = progressions(
        lines, kind="s8", start=start, step=step, limit=limit, direction=direction, lags=(0, 0)
    )
    for name, values in exact.items():
        known = found[name]
        assert known is not None or name not in plain
        if known is not None:
            assert [known[0] + known[1] * trip for trip in range(trips)] == values
