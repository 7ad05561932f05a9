"""Dynamic dimensions: arrays have their size of the moment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.interpreter.running import run

LINE = np.array([1, 2, 4, 8], np.int32)


def entry(body: str) -> str:
    return f"""HloModule m
    add {{ x = s32[] parameter(0) y = s32[] parameter(1) ROOT r = s32[] add(x, y) }}
    ENTRY e {{ a = s32[4] parameter(0) b = s32[4] parameter(1) n = s32[] parameter(2)
      m = s32[] parameter(3) zero = s32[] constant(0)
      x = s32[<=4] set-dimension-size(a, n), dimensions={{0}}
      y = s32[<=4] set-dimension-size(b, m), dimensions={{0}}
      {body} }}"""


def ask(body: str, n: int = 3, m: int = 2) -> Any:
    """What `body` makes of a = [1, 2, 4, 8], b = 10 a, and their first n and m elements x and y."""
    sizes = np.array(n, np.int32), np.array(m, np.int32)
    return run(entry(body), LINE, LINE * 10, *sizes).tolist()


# sizes of x and y; x + y, x + b, a + y: confirmed by the oracle through their sums and sizes
SUMS = [
    (3, 2, [11, 22], [11, 22, 44], [11, 22]),
    (2, 3, [11, 22], [11, 22], [11, 22, 44]),
    (1, 3, [11, 21, 41], [11], [11, 22, 44]),
    (3, 1, [11, 12, 14], [11, 22, 44], [11]),
    (1, 1, [11], [11], [11]),
    (0, 2, [], [], [11, 22]),
]


@pytest.mark.parametrize(("n", "m", "x_y", "x_b", "a_y"), SUMS)
def test_elementwise(n: int, m: int, x_y: list[int], x_b: list[int], a_y: list[int]) -> None:
    assert ask("ROOT r = s32[<=4] add(x, y)", n, m) == x_y
    assert ask("ROOT r = s32[<=4] add(x, b)", n, m) == x_b
    assert ask("ROOT r = s32[<=4] add(a, y)", n, m) == a_y


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ROOT r = s32[] get-dimension-size(x), dimensions={0}", 3),
        ("ROOT r = s32[] reduce(x, zero), dimensions={0}, to_apply=add", 7),
        ("ROOT r = s32[<=8] concatenate(x, y), dimensions={0}", [1, 2, 4, 10, 20]),
        ("ROOT r = s32[<=4] reverse(x), dimensions={0}", [4, 2, 1]),
        ("ROOT r = s32[<=6] pad(x, zero), padding=1_1", [0, 1, 2, 4, 0]),
        ("ROOT r = s32[<=4,2] broadcast(y), dimensions={0}", [[10, 10], [20, 20]]),
        ("ROOT r = s32[<=4] slice(x), slice={[0:4]}", [1, 2, 4]),
        ("ROOT r = s32[<=4,1] reshape(x)", [[1], [2], [4]]),
        ("ROOT r = s32[<=4,1] bitcast(x)", [[1], [2], [4]]),
        ("ROOT r = s32[<=4] negate(x)", [-1, -2, -4]),
        ("c = pred[<=4] compare(x, y), direction=LT ROOT r = s32[<=4] select(c, x, b)", [1, 2]),
        ("ROOT r = s32[<=4] clamp(zero, x, n)", [1, 2, 3]),
        ("ROOT r = s32[<=4] set-dimension-size(x, m), dimensions={0}", [1, 2]),
        ("ROOT r = s32[<=4] dynamic-slice(x, m), dynamic_slice_sizes={4}", [1, 2, 4]),
        ("u = s32[1] reshape(n) ROOT r = s32[<=4] dynamic-update-slice(x, u, n)", [1, 2, 3]),
        (
            "i = s32[3] constant({0,3,1}) ROOT r = s32[3] gather(x, i), offset_dims={}, "
            "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
            [1, 4, 2],
        ),
        (
            "i = s32[3] constant({0,3,1}) u = s32[3] constant({10,20,30}) ROOT r = s32[<=4] "
            "scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
            [11, 32, 4],
        ),
    ],
)
def test_nothing_beyond_the_size_shows(body: str, expected: object) -> None:
    assert ask(body) == expected


@pytest.mark.parametrize(("size", "expected"), [(-1, []), (0, []), (4, [1, 2, 4, 8]), (9, LINE)])
def test_sizes_are_kept_between_zero_and_the_bound(size: int, expected: list[int]) -> None:
    assert ask("ROOT r = s32[<=4] copy(x)", size) == list(expected)


def test_what_a_dimension_gains_is_zero() -> None:
    body = "k = s32[] constant(4) ROOT r = s32[4] set-dimension-size(x, k), dimensions={0}"
    assert ask(body) == [1, 2, 4, 0]


# source, sizes of the moment, target, sizes of the result
RESHAPES = [
    ("s32[<=4,6]", (2, 6), "s32[<=24]", (12,)),
    ("s32[2,<=6]", (2, 4), "s32[<=12]", (8,)),
    ("s32[<=12]", (8,), "s32[2,<=3,2]", (2, 2, 2)),
    ("s32[2,<=6]", (2, 4), "s32[2,2,<=3]", (2, 2, 2)),
    ("s32[<=6,2]", (4, 2), "s32[2,<=3,2]", (2, 2, 2)),
    ("s32[<=4,6]", (0, 6), "s32[<=4,3,2]", (0, 3, 2)),
    ("s32[5,<=1]", (5, 0), "s32[<=1,5]", (0, 5)),
    ("s32[<=4,2,<=3,5]", (1, 2, 2, 5), "s32[<=8,<=15]", (2, 10)),
]


@pytest.mark.parametrize(("source", "sizes", "target", "expected"), RESHAPES)
def test_reshape(
    source: str, sizes: tuple[int, ...], target: str, expected: tuple[int, ...]
) -> None:
    text = f"HloModule m\nENTRY e {{ a = {source} parameter(0) ROOT r = {target} reshape(a) }}"
    operand = np.arange(np.prod(sizes), dtype=np.int32).reshape(sizes)
    np.testing.assert_array_equal(run(text, operand), operand.reshape(expected))


def test_dynamic_reshape() -> None:
    body = """k = s32[] constant(3) one = s32[] constant(1)
      ROOT r = s32[<=1,<=4] dynamic-reshape(x, one, k)"""
    assert ask(body) == [[1, 2, 4]]


def test_a_size_that_the_shape_does_not_tell_is_that_of_xla_on_cpus() -> None:
    """Elements behind the size do not count, but are there for a reshape of the dimension."""
    values = np.arange(6, dtype=np.float32) + 1
    found = run(
        """HloModule m
add { l = f32[] parameter(0) r = f32[] parameter(1) ROOT x = f32[] add(l, r) }
ENTRY e {
  p = f32[6] parameter(0)
  two = s32[] constant(2)
  zero = f32[] constant(0)
  c = f32[6] set-dimension-size(p, two), dimensions={0}
  s = f32[6] add(c, p)
  m = pred[6] compare(p, c), direction=EQ
  q = f32[6] select(m, s, p)
  n = f32[] reduce(q, zero), dimensions={0}, to_apply=add
  k = s32[] get-dimension-size(c), dimensions={0}
  r = f32[1,6] reshape(c)
  g = f32[2,3] reshape(c)
  b = f32[6,2] broadcast(c), dimensions={0}
  h = f32[4] slice(c), slice={[0:4]}
  ROOT t = (f32[6], f32[6], f32[], s32[], f32[1,6], f32[2,3], f32[6,2], f32[4])
    tuple(c, s, n, k, r, g, b, h)
}""",
        values,
    )
    expected: list[Any] = [[1, 2], [2, 4], 6, 6, [[1, 2]], [[1, 2, 3], [4, 5, 6]]]
    expected += [[[1, 1], [2, 2]], [1, 2]]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
