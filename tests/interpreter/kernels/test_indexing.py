"""Blocks at positions known only when the program runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.running import run

LINE = np.arange(6, dtype=np.int32)
GRID = np.arange(12, dtype=np.int32).reshape(3, 4)


@pytest.mark.parametrize("index_type", ["s32", "s64", "u8", "u64"])
@pytest.mark.parametrize(
    ("start", "expected"), [(0, [0, 1]), (3, [3, 4]), (5, [4, 5]), (100, [4, 5])]
)
def test_dynamic_slice_moves_inside(index_type: str, start: int, expected: list[int]) -> None:
    text = f"""HloModule m
    ENTRY e {{ a = s32[6] parameter(0) i = {index_type}[] constant({start})
      ROOT r = s32[2] dynamic-slice(a, i), dynamic_slice_sizes={{2}} }}"""
    assert run(text, LINE).tolist() == expected


def test_negative_starts_are_zero() -> None:
    text = """HloModule m
    ENTRY e { a = s32[3,4] parameter(0) i = s32[] constant(-7) j = s32[] constant(2)
      ROOT r = s32[2,2] dynamic-slice(a, i, j), dynamic_slice_sizes={2,2} }"""
    np.testing.assert_array_equal(run(text, GRID), GRID[0:2, 2:4])


def test_starts_in_one_vector() -> None:
    text = """HloModule m
    ENTRY e { a = s32[3,4] parameter(0) i = s32[2] parameter(1) u = s32[1,2] parameter(2)
      s = s32[1,2] dynamic-slice(a, i), dynamic_slice_sizes={1,2}
      d = s32[3,4] dynamic-update-slice(a, u, i)
      ROOT r = (s32[1,2], s32[3,4]) tuple(s, d) }"""
    before = GRID.copy()
    part, updated = run(text, GRID, np.array([1, 9], np.int32), np.array([[-1, -2]], np.int32))
    np.testing.assert_array_equal(part, GRID[1:2, 2:4])
    expected = GRID.copy()
    expected[1, 2:] = [-1, -2]
    np.testing.assert_array_equal(updated, expected)
    np.testing.assert_array_equal(GRID, before)  # operands stay


@pytest.mark.parametrize(
    ("start", "expected"), [(-1, [8, 9, 2, 3]), (1, [0, 8, 9, 3]), (4, [0, 1, 8, 9])]
)
def test_dynamic_update_slice(start: int, expected: list[int]) -> None:
    text = """HloModule m
    ENTRY e { a = s32[4] parameter(0) u = s32[2] parameter(1) i = s32[] parameter(2)
      ROOT r = s32[4] dynamic-update-slice(a, u, i) }"""
    operands = (np.arange(4, dtype=np.int32), np.array([8, 9], np.int32), np.array(start, np.int32))
    assert run(text, *operands).tolist() == expected


def test_update_of_a_broadcast() -> None:
    text = """HloModule m
    ENTRY e { z = f32[] constant(0) a = f32[3] broadcast(z), dimensions={} u = f32[1] parameter(0)
      i = s32[] constant(1) ROOT r = f32[3] dynamic-update-slice(a, u, i) }"""
    assert run(text, np.array([5], np.float32)).tolist() == [0, 5, 0]
