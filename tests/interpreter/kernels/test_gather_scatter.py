"""Gather and scatter, against loops over all elements that follow their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.interpreter.running import run

GRID = np.arange(12, dtype=np.float32).reshape(3, 4)
CUBE = np.arange(60, dtype=np.float32).reshape(3, 4, 5)

# operand, indices, slice_sizes, dimension numbers
GATHERS: dict[str, Any] = {
    "rows": (
        GRID,
        [2, 0, 1, 1],
        (1, 4),
        {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0], "vector": 1},
    ),
    "columns": (
        GRID,
        [[3], [1]],
        (3, 1),
        {"offset_dims": [0], "collapsed_slice_dims": [1], "start_index_map": [1], "vector": 1},
    ),
    "out of bounds": (
        GRID,
        [[-5, 9], [7, -1], [1, 2]],
        (2, 2),
        {"offset_dims": [1, 2], "start_index_map": [0, 1], "vector": 1},
    ),
    "elements": (
        GRID,
        [[0, 1], [2, 3], [1, 0]],
        (1, 1),
        {"collapsed_slice_dims": [0, 1], "start_index_map": [0, 1], "vector": 1},
    ),
    "swapped index vector in front": (
        GRID,
        [[0, 1, 3], [2, 0, 1]],
        (1, 1),
        {"collapsed_slice_dims": [0, 1], "start_index_map": [1, 0], "vector": 0},
    ),
    "windows around batch": (
        CUBE,
        [[[0], [2]], [[3], [1]]],
        (2, 2, 5),
        {"offset_dims": [0, 2, 4], "start_index_map": [1], "vector": 2},
    ),
    "one window": (
        CUBE,
        [1, 2],
        (1, 2, 3),
        {"offset_dims": [0, 1], "collapsed_slice_dims": [0], "start_index_map": [0, 2]},
    ),
    "batching": (
        CUBE,
        [[0, 3, 1], [2, 2, 9]],
        (1, 1, 4),
        {
            **{"offset_dims": [2], "collapsed_slice_dims": [1], "start_index_map": [1]},
            **{"operand_batching_dims": [0], "start_indices_batching_dims": [1], "vector": 2},
        },
    ),
    "batching behind the index vector": (
        CUBE,
        [[[0, 1, 2]], [[3, 2, 1]]],
        (1, 1, 1),
        {
            **{"collapsed_slice_dims": [1, 2], "start_index_map": [1, 2]},
            **{"operand_batching_dims": [0], "start_indices_batching_dims": [2], "vector": 0},
        },
    ),
}


def text_of(numbers: dict[str, object], *, skip: str = "vector") -> str:
    lists = {k: v for k, v in numbers.items() if k != skip and isinstance(v, list)}
    return ", ".join(f"{k}={{{','.join(map(str, v))}}}" for k, v in lists.items())


def shape_of(array: np.ndarray) -> str:
    name = {"float32": "f32", "int32": "s32"}[array.dtype.name]
    return f"{name}[{','.join(map(str, array.shape))}]"


def starts_of(
    indices: np.ndarray, vector: int, mapped: list[int], batching: list[tuple[int, int]], rank: int
) -> tuple[tuple[int, ...], dict[tuple[int, ...], list[int]]]:
    """The sizes of the batch, and for each of its elements where the block starts."""
    if vector == indices.ndim:
        indices = indices[..., None]
    batch = tuple(s for d, s in enumerate(indices.shape) if d != vector)
    starts = {}
    for position in np.ndindex(batch):
        start = [0] * rank
        for i, dimension in enumerate(mapped):
            start[dimension] = int(indices[(*position[:vector], i, *position[vector:])])
        for dimension, of_indices in batching:
            start[dimension] = position[of_indices - (of_indices > vector)]
        starts[position] = start
    return batch, starts


@pytest.mark.parametrize("case", GATHERS)
def test_gather(case: str) -> None:
    operand, listed, sizes, numbers = GATHERS[case]
    indices = np.array(listed, np.int32)
    vector = numbers.get("vector", 0)
    offset_dims = numbers.setdefault("offset_dims", [])
    batching = numbers.get("operand_batching_dims", [])
    dropped = {*numbers.setdefault("collapsed_slice_dims", []), *batching}
    pairs = list(zip(batching, numbers.get("start_indices_batching_dims", []), strict=True))
    batch, starts = starts_of(indices, vector, numbers["start_index_map"], pairs, operand.ndim)
    kept = [d for d in range(operand.ndim) if d not in dropped]
    rank = len(batch) + len(kept)
    batch_dims = [d for d in range(rank) if d not in offset_dims]
    result_sizes = [0] * rank
    for d, size in zip(batch_dims, batch, strict=True):
        result_sizes[d] = size
    for d, of_operand in zip(offset_dims, kept, strict=True):
        result_sizes[d] = sizes[of_operand]
    expected = np.zeros(result_sizes, operand.dtype)
    for place in np.ndindex(*result_sizes):
        start = starts[tuple(place[d] for d in batch_dims)]
        at = [
            min(max(s, 0), whole - size)
            for s, whole, size in zip(start, operand.shape, sizes, strict=True)
        ]
        for d, of_operand in zip(offset_dims, kept, strict=True):
            at[of_operand] += place[d]
        expected[place] = operand[tuple(at)]
    text = f"""HloModule m
    ENTRY e {{ a = {shape_of(operand)} parameter(0) i = {shape_of(indices)} parameter(1)
      ROOT r = {shape_of(expected)} gather(a, i), {text_of(numbers)}, index_vector_dim={vector},
        slice_sizes={{{",".join(map(str, sizes))}}} }}"""
    np.testing.assert_array_equal(run(text, operand, indices), expected)


def test_nothing_to_gather_from() -> None:
    """The oracle gives zeros."""
    text = """HloModule m
    ENTRY e { a = f32[0,2] parameter(0) i = s32[3] parameter(1)
      ROOT r = f32[3,2] gather(a, i), offset_dims={1}, collapsed_slice_dims={0},
        start_index_map={0}, index_vector_dim=1, slice_sizes={0,2} }"""
    assert run(text, np.zeros((0, 2), np.float32), np.arange(3, dtype=np.int32)).tolist() == (
        [[0, 0]] * 3
    )


COMBINERS: dict[str, Any] = {
    "add": ("add(x, y)", lambda x, y: x + y),
    "maximum, turned around": ("maximum(y, x)", max),
    "the update": ("copy(y)", lambda x, y: y),
    "not a single operation": ("subtract(x, s)", lambda x, y: x - y * y),
    "subtract": ("subtract(x, y)", lambda x, y: x - y),
}

# operand, indices, sizes of the updates, dimension numbers
SCATTERS: dict[str, Any] = {
    "elements": (
        np.zeros(5),
        [[1], [3], [1], [1], [-1], [5]],
        (6,),
        {"inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0], "vector": 1},
    ),
    "rows": (
        GRID,
        [2, 0, 2, 3],
        (4, 4),
        {
            **{"update_window_dims": [1], "inserted_window_dims": [0]},
            **{"scatter_dims_to_operand_dims": [0], "vector": 1},
        },
    ),
    "windows that overlap": (
        GRID,
        [[0, 0], [1, 1], [0, 1], [2, 2], [-1, 0]],
        (2, 5, 2),
        {
            **{"update_window_dims": [0, 2]},
            **{"scatter_dims_to_operand_dims": [0, 1], "vector": 1},
        },
    ),
    "narrower than the operand": (
        GRID,
        [[1], [1]],
        (2, 3),
        {
            **{"update_window_dims": [1], "inserted_window_dims": [0]},
            **{"scatter_dims_to_operand_dims": [0], "vector": 1},
        },
    ),
    "batching": (
        CUBE,
        [[0, 3, 1], [0, 2, 9]],
        (2, 5, 3),
        {
            **{"update_window_dims": [1], "inserted_window_dims": [1]},
            **{"scatter_dims_to_operand_dims": [1], "vector": 2},
            **{"input_batching_dims": [0], "scatter_indices_batching_dims": [1]},
        },
    ),
    "no indices": (
        GRID,
        np.zeros((0, 1)),
        (0, 4),
        {
            **{"update_window_dims": [1], "inserted_window_dims": [0]},
            **{"scatter_dims_to_operand_dims": [0], "vector": 1},
        },
    ),
}


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("case", SCATTERS)
def test_scatter(case: str, combiner: str) -> None:
    values, listed, update_sizes, numbers = SCATTERS[case]
    operand, indices = values.astype(np.int32), np.array(listed, np.int32)
    updates = (np.arange(np.prod(update_sizes)) % 7 - 2).reshape(update_sizes).astype(np.int32)
    vector, windows = numbers["vector"], numbers.setdefault("update_window_dims", [])
    batching = numbers.get("input_batching_dims", [])
    dropped = {*numbers.setdefault("inserted_window_dims", []), *batching}
    pairs = list(zip(batching, numbers.get("scatter_indices_batching_dims", []), strict=True))
    mapped = numbers["scatter_dims_to_operand_dims"]
    _, starts = starts_of(indices, vector, mapped, pairs, operand.ndim)
    kept = [d for d in range(operand.ndim) if d not in dropped]
    block = [1] * operand.ndim
    for d, of_update in zip(kept, windows, strict=True):
        block[d] = update_sizes[of_update]
    body, combine = COMBINERS[combiner]
    expected = operand.copy()
    for position, start in starts.items():
        if any(
            not 0 <= s <= whole - size
            for s, whole, size in zip(start, operand.shape, block, strict=True)
        ):
            continue
        for inside in np.ndindex(*block):
            at = list(position)
            for d, of_update in zip(kept, windows, strict=True):
                at.insert(of_update, inside[d])
            place = tuple(s + i for s, i in zip(start, inside, strict=True))
            expected[place] = combine(int(expected[place]), int(updates[tuple(at)]))
    shape = shape_of(operand)
    text = f"""HloModule m
    f {{ x = s32[] parameter(0) y = s32[] parameter(1) s = s32[] multiply(y, y)
      ROOT r = s32[] {body} }}
    ENTRY e {{ a = {shape} parameter(0) i = {shape_of(indices)} parameter(1)
      u = {shape_of(updates)} parameter(2)
      ROOT r = {shape} scatter(a, i, u), {text_of(numbers)}, index_vector_dim={vector},
        to_apply=f }}"""
    before = operand.copy()
    np.testing.assert_array_equal(run(text, operand, indices, updates), expected)
    np.testing.assert_array_equal(operand, before)


def test_variadic_scatter() -> None:
    """Each output depends on all inputs; index 1 comes twice."""
    text = """HloModule m
    f { a = f32[] parameter(0) b = s32[] parameter(1) x = f32[] parameter(2) y = s32[] parameter(3)
      s = f32[] add(a, x) t = s32[] multiply(b, y) ROOT r = (f32[], s32[]) tuple(s, t) }
    ENTRY e { a = f32[3] parameter(0) b = s32[3] parameter(1) i = s32[4] parameter(2)
      x = f32[4] parameter(3) y = s32[4] parameter(4)
      ROOT r = (f32[3], s32[3]) scatter(a, b, i, x, y), update_window_dims={},
        inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,
        to_apply=f }"""
    sums, products = run(
        text,
        np.zeros(3, np.float32),
        np.ones(3, np.int32),
        np.array([0, 1, 1, 7], np.int32),
        np.array([1, 2, 3, 4], np.float32),
        np.array([10, 20, 30, 40], np.int32),
    )
    assert sums.tolist() == [1, 5, 0]
    assert products.tolist() == [10, 600, 1]


def test_the_order_of_updates_shows_in_rounding() -> None:
    """1e8 + 1 is 1e8 in f32, so that (1e8 + 1) - 1e8 is 0, not 1."""
    text = """HloModule m
    f { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] add(x, y) }
    ENTRY e { a = f32[1] parameter(0) i = s32[3] parameter(1) u = f32[3] parameter(2)
      ROOT r = f32[1] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }"""
    zeros = np.zeros(3, np.int32)
    updates = np.array([1e8, 1, -1e8], np.float32)
    assert run(text, np.zeros(1, np.float32), zeros, updates).tolist() == [0]


def test_of_updates_that_replace_the_last_one_stays() -> None:
    text = """HloModule m
    f { x = f32[] parameter(0) ROOT y = f32[] parameter(1) }
    ENTRY e { a = f32[3,2] parameter(0) i = s32[5] parameter(1) u = f32[5,2] parameter(2)
      ROOT r = f32[3,2] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }"""
    updates = np.arange(10, dtype=np.float32).reshape(5, 2)
    found = run(text, np.full((3, 2), -1, np.float32), np.array([2, 0, 2, 2, 9], np.int32), updates)
    assert found.tolist() == [[2, 3], [-1, -1], [6, 7]]


SCALAR = """HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY e {{
  p = f32[] parameter(0)
  i = s32[{indices}] parameter(1)
  u = f32[{updates}] parameter(2)
  ROOT s = f32[] scatter(p, i, u), update_window_dims={{}}, inserted_window_dims={{}},
    scatter_dims_to_operand_dims={{}}, index_vector_dim={vector}, to_apply=add
}}"""


@pytest.mark.parametrize(
    ("indices", "updates", "vector"),
    [((0,), (), 0), ((3, 0), (3,), 1), ((2, 0, 3), (2, 3), 1), ((0, 0), (0,), 1)],
)
def test_scatters_into_a_scalar(
    indices: tuple[int, ...], updates: tuple[int, ...], vector: int
) -> None:
    text = SCALAR.format(
        indices=",".join(map(str, indices)), updates=",".join(map(str, updates)), vector=vector
    )
    added = np.arange(np.prod(updates, dtype=int), dtype=np.float32).reshape(updates) + 1
    result = run(text, np.float32(0.5), np.zeros(indices, np.int32), added)
    assert result == 0.5 + added.sum()
