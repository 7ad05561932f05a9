"""The counter after an inner loop, computed without running that loop."""

from __future__ import annotations

import pytest

from hloopt.analysis.loops.expressions import constant_value
from hloopt.ir import Instruction, Opcode
from hloopt.passes.collectives.collective_pipeliner.projection import projected
from hloopt.text import parse_module

TEXT = """HloModule m
body {
  p = (f32[], s8[], s8[], s8[]) parameter(0)
  x = f32[] get-tuple-element(p), index=0
  i = s8[] get-tuple-element(p), index=1
  other = s8[] get-tuple-element(p), index=2
  end = s8[] get-tuple-element(p), index=3
  step = s8[] constant(STEP)
  j = s8[] add(i, step)
  k = s8[] add(other, step)
  ROOT next = (f32[], s8[], s8[], s8[]) tuple(x, j, k, end)
}
condition {
  q = (f32[], s8[], s8[], s8[]) parameter(0)
  now = s8[] get-tuple-element(q), index=1
  that = s8[] get-tuple-element(q), index=3
  c = s8[] constant(3)
  later = s8[] add(now, c)
  n = s8[] constant(LIMIT)
  ROOT go = pred[] compare(COMPARED)
}
ENTRY main {
  zero = f32[] constant(0)
  start = s8[] constant(START)
  given = s8[] parameter(0)
  init = (f32[], s8[], s8[], s8[]) tuple(zero, FIRST, given, given)
  w = (f32[], s8[], s8[], s8[]) while(INIT), condition=condition, body=body
  read = s8[] get-tuple-element(w), index=1
  second = s8[] get-tuple-element(w), index=2
  own = s8[] get-tuple-element(init), index=1
  ROOT all = (s8[], s8[], s8[]) tuple(read, second, own)
}
"""


def after_loop(
    start: int = 0,
    step: int = 1,
    limit: int = 10,
    *,
    compared: str = "now, n), direction=LT",
    first: str = "start",
    init: str = "init",
) -> tuple[Instruction, Instruction]:
    """The read of the counter after a loop, and what it is projected to."""
    text = TEXT.replace("COMPARED)", compared).replace("INIT", init).replace("FIRST", first)
    text = text.replace("START", str(start)).replace("STEP", str(step))
    text = text.replace("LIMIT", str(limit))
    if init != "init":
        text = text.replace("  w = ", f"  {init} = (f32[], s8[], s8[], s8[]) parameter(1)\n  w = ")
    (read,) = [i for i in parse_module(text).instructions() if i.name == "read"]
    return read, projected(read)


@pytest.mark.parametrize("limit", [-9, -1, 0, 1, 7, 8, 12])
@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_the_counter_is_what_the_loop_leaves(step: int, limit: int) -> None:
    for start in range(-13, 14):
        read, result = after_loop(start, step, limit)
        counter = start
        while counter < limit:
            counter += step
        assert result is not read
        assert constant_value(result) == counter


def test_a_start_that_is_not_known_is_no_obstacle() -> None:
    read, result = after_loop(first="given")
    assert result.opcode is Opcode.MAXIMUM
    given, limit = result.operands
    assert (given.name, limit.payload) == ("given", "10")
    assert {i.name for i in read.parent.instructions} >= {result.name, limit.name}


def test_a_step_of_one_takes_one_comparison_with_the_limit() -> None:
    for step, added in ((1, 2), (2, 10)):
        before = len(TEXT[TEXT.index("ENTRY") :].splitlines()) - 2
        read, _ = after_loop(step=step, first="given")
        assert len(list(read.parent.instructions)) == before + added


@pytest.mark.parametrize(
    ("step", "limit", "is_projected"),
    [
        (1, 127, True),
        (2, 126, True),
        (2, 127, False),  # 128 is no s8
        (31, 97, True),
        (31, 98, False),
        (31, 1, True),
        (32, 1, False),  # 4 · 32 neither
    ],
)
def test_numbers_that_overflow_are_not_computed(step: int, limit: int, is_projected: bool) -> None:
    read, result = after_loop(0, step, limit)
    assert (result is not read) is is_projected


@pytest.mark.parametrize(
    ("step", "compared"),
    [
        (1, "now, n), direction=LE"),
        (1, "now, n), direction=NE"),
        (-1, "now, n), direction=GT"),
        (-1, "now, n), direction=LT"),
        (0, "now, n), direction=LT"),
        (1, "later, n), direction=LT"),
        (1, "now, that), direction=LT"),  # which a trip leaves, but nobody knows
        (1, "that, n), direction=LT"),
        (1, "n, now), direction=LT"),
    ],
)
def test_other_ways_to_count_are_not_projected(step: int, compared: str) -> None:
    read, result = after_loop(0, step, 10, compared=compared)
    assert result is read


def test_a_limit_that_comes_first_is_projected_too() -> None:
    _, result = after_loop(4, 2, 11, compared="n, now), direction=GT")
    assert constant_value(result) == 12


def test_a_loop_that_starts_with_no_tuple_is_not_projected() -> None:
    read, result = after_loop(init="whole")
    assert result is read


@pytest.mark.parametrize("name", ["second", "own", "w", "start"])
def test_anything_else_is_itself(name: str) -> None:
    """Another element that counts, an element of a plain tuple, a loop, a constant."""
    read, _ = after_loop()
    (value,) = [i for i in read.parent.instructions if i.name == name]
    assert projected(value) is value
