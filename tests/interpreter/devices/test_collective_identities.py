"""Identities between collectives, ragged ones among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.interpreter.devices.arrays import FOUR, P4, lists
from tests.interpreter.several_devices import entry, run_on

from hloopt.interpreter.errors import RunError

GROUPS = {
    "all": (1, 4, "replica_groups={}"),
    "halves": (1, 4, "replica_groups={{0,1,2,3}}, use_global_device_ids=true"),
    "grid": (2, 2, "replica_groups={{0,1}}"),
    "turned": (2, 4, "replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true"),
    "eight": (8, 1, "replica_groups={{7,6,5,4},{0,2,1,3}}, use_global_device_ids=true"),
}


def random_arguments(count: int, *sizes: int) -> list[list[Any]]:
    random = np.random.default_rng(5)
    return [[random.integers(-9, 9, sizes).astype(np.float32)] for _ in range(count)]


@pytest.mark.parametrize("name", GROUPS)
def test_reduce_scatter_then_all_gather_is_all_reduce(name: str) -> None:
    replicas, partitions, groups = GROUPS[name]
    arguments = random_arguments(replicas * partitions, 3, 8)
    text = entry(
        "p = f32[3,8] parameter(0)",
        f"s = f32[3,2] reduce-scatter(p), channel_id=1, {groups}, dimensions={{1}}, to_apply=sum",
        f"g = f32[3,8] all-gather(s), channel_id=2, {groups}, dimensions={{1}}",
        f"r = f32[3,8] all-reduce(p), channel_id=3, {groups}, to_apply=sum",
        "ROOT t = (f32[3,8], f32[3,8]) tuple(g, r)",
    )
    for gathered, reduced in run_on(replicas, partitions, text, arguments):
        np.testing.assert_array_equal(gathered, reduced)


@pytest.mark.parametrize(("replicas", "partitions"), [(1, 4), (4, 1), (2, 4)])
def test_all_to_all_twice_and_permutes_there_and_back_are_identity(
    replicas: int, partitions: int
) -> None:
    channel = ", channel_id=1" if partitions > 1 else ""
    there, back = "{{0,1},{1,3},{3,2},{2,0}}", "{{1,0},{3,1},{2,3},{0,2}}"
    arguments = random_arguments(replicas * partitions, 8, 3)
    text = entry(
        "p = f32[8,3] parameter(0)",
        f"a = f32[8,3] all-to-all(p), replica_groups={{{{2,0,1,3}}}}, dimensions={{0}}{channel}",
        f"b = f32[8,3] all-to-all(a), replica_groups={{{{2,0,1,3}}}}, dimensions={{0}}{channel}",
        f"c = f32[8,3] collective-permute(p), source_target_pairs={there}{channel}",
        f"d = f32[8,3] collective-permute(c), source_target_pairs={back}{channel}",
        "ROOT t = (f32[8,3], f32[8,3], f32[8,3]) tuple(b, d, a)",
    )
    for (own,), (exchanged, permuted, once) in zip(
        arguments, run_on(replicas, partitions, text, arguments), strict=True
    ):
        np.testing.assert_array_equal(exchanged, own)
        np.testing.assert_array_equal(permuted, own)
        assert (once != own).any()


def test_an_all_reduce_of_rows_of_ones_own_is_an_all_gather() -> None:
    rows = random_arguments(8, 1, 5)
    spread = []
    for device, (row,) in enumerate(rows):
        whole = np.zeros((8, 5), np.float32)
        whole[device] = row
        spread.append([row, whole])
    text = entry(
        "row = f32[1,5] parameter(0)",
        "whole = f32[8,5] parameter(1)",
        "g = f32[8,5] all-gather(row), replica_groups={}, dimensions={0}",
        "r = f32[8,5] all-reduce(whole), replica_groups={}, to_apply=sum",
        "ROOT t = (f32[8,5], f32[8,5]) tuple(g, r)",
    )
    expected = np.concatenate([row for (row,) in rows])
    for gathered, reduced in run_on(8, 1, text, spread):
        np.testing.assert_array_equal(gathered, expected)
        np.testing.assert_array_equal(reduced, expected)


RAGGED = entry(
    "p = f32[4] parameter(0)",
    "o = f32[6] parameter(1)",
    *(f"x{number} = s32[2] parameter({number})" for number in range(2, 6)),
    "ROOT r = f32[6] ragged-all-to-all(p, o, x2, x3, x4, x5), replica_groups={{0,1}}",
)


def ragged_arguments(*vectors: tuple[list[int], ...]) -> list[list[Any]]:
    return [
        [
            np.arange(4, dtype=np.float32) + 10 * device,
            np.full(6, -1, np.float32),
            *(np.array(vector, np.int32) for vector in own),
        ]
        for device, own in enumerate(vectors)
    ]


def test_a_ragged_all_to_all_writes_where_the_senders_say() -> None:
    arguments = ragged_arguments(
        ([0, 1], [1, 2], [0, 0], [1, 1]),
        ([0, 1], [1, 3], [2, 3], [2, 3]),
    )
    found = run_on(2, 1, RAGGED, arguments)
    assert lists(found) == [[0, -1, 10, -1, -1, -1], [1, 2, -1, 11, 12, 13]]


def test_a_ragged_all_to_all_of_equal_sizes_is_an_all_to_all() -> None:
    arguments = ragged_arguments(
        ([0, 2], [2, 2], [0, 0], [2, 2]),
        ([0, 2], [2, 2], [2, 2], [2, 2]),
    )
    exchange = entry(P4, "ROOT r = f32[4] all-to-all(p), replica_groups={}, dimensions={0}")
    equal = run_on(2, 1, exchange, FOUR[:2])
    for ragged, whole in zip(run_on(2, 1, RAGGED, arguments), equal, strict=True):
        assert ragged.tolist() == [*whole.tolist(), -1, -1]


def test_ragged_rows_out_of_range_are_an_error() -> None:
    arguments = ragged_arguments(
        ([0, 3], [1, 2], [0, 5], [1, 1]),
        ([0, 1], [1, 3], [2, 3], [2, 3]),
    )
    with pytest.raises(RunError, match="device 0 sends rows 3 to 5 of 4"):
        run_on(2, 1, RAGGED, arguments)
