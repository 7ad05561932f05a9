"""What comes of collectives: sizes, order of the ranks, modes, and identities between them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.interpreter.several_devices import entry, run_on

from hloopt.interpreter.errors import RunError

FOUR = [[np.arange(4, dtype=np.float32) + 10 * device] for device in range(4)]
NUMBERS = [[np.array([device], np.float32)] for device in range(4)]
P1 = "p = f32[1] parameter(0)"
P4 = "p = f32[4] parameter(0)"


def lists(values: list[Any]) -> list[Any]:
    return [
        tuple(array.tolist() for array in value) if isinstance(value, tuple) else value.tolist()
        for value in values
    ]


# The oracle gave these on four devices, the nth with NUMBERS[n] or FOUR[n].
ON_XLA = {
    "gather of replicas and partitions": (
        *(2, 2, NUMBERS, P1),
        "f32[4] all-gather(p), channel_id=1, replica_groups={{1,0}}, dimensions={0}",
        [[2, 3, 0, 1]] * 4,
    ),
    "gather of all replicas and partitions": (
        *(2, 2, NUMBERS, P1),
        "f32[4] all-gather(p), channel_id=1, replica_groups={}, dimensions={0}",
        [[0, 1, 2, 3]] * 4,
    ),
    "gather of flattened ids": (
        *(2, 2, NUMBERS, P1),
        "f32[2] all-gather(p), channel_id=1, replica_groups={{3,0},{1,2}}, "
        "use_global_device_ids=true, dimensions={0}",
        [[3, 0], [1, 2], [1, 2], [3, 0]],
    ),
    "gather of replicas": (
        *(2, 2, NUMBERS, P1),
        "f32[2] all-gather(p), replica_groups={{1,0}}, dimensions={0}",
        [[2, 0], [3, 1], [2, 0], [3, 1]],
    ),
    "groups of different sizes": (
        *(4, 1, NUMBERS, P1),
        "f32[1] all-reduce(p), replica_groups={{0,1,2},{3}}, to_apply=sum",
        [[3]] * 4,
    ),
    "permute of partitions": (
        *(2, 2, NUMBERS, P1),
        "f32[1] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}",
        [[0], [0], [0], [2]],
    ),
    "permute of replicas": (
        *(2, 2, NUMBERS, P1),
        "f32[1] collective-permute(p), source_target_pairs={{0,1}}",
        [[0], [0], [0], [1]],
    ),
    "permute to a replica that is not there": (
        *(1, 4, NUMBERS, P1),
        "f32[1] collective-permute(p), source_target_pairs={{0,1}}",
        [[0]] * 4,
    ),
    "all-to-all of replicas": (
        *(4, 1, FOUR, P4),
        "f32[4] all-to-all(p), replica_groups={{1,0},{2,3}}, dimensions={0}",
        [[12, 13, 2, 3], [10, 11, 0, 1], [20, 21, 30, 31], [22, 23, 32, 33]],
    ),
    "all-to-all of partitions": (
        *(2, 2, FOUR, P4),
        "f32[4] all-to-all(p), channel_id=1, replica_groups={{1,0}}, dimensions={0}",
        [[12, 13, 2, 3], [10, 11, 0, 1], [32, 33, 22, 23], [30, 31, 20, 21]],
    ),
    "reduce-scatter": (
        *(4, 1, FOUR, P4),
        "f32[2] reduce-scatter(p), replica_groups={{1,0},{2,3}}, dimensions={0}, to_apply=sum",
        [[14, 16], [10, 12], [50, 52], [54, 56]],
    ),
}


@pytest.mark.parametrize("case", ON_XLA)
def test_what_xla_gives(case: str) -> None:
    replicas, partitions, arguments, parameter, line, expected = ON_XLA[case]
    found = run_on(replicas, partitions, entry(parameter, f"ROOT r = {line}"), arguments)
    assert lists(found) == expected


def test_an_all_to_all_of_tuples_has_an_operand_for_each_rank() -> None:
    text = entry(
        P1,
        "q = f32[1] constant({9})",
        "ROOT r = (f32[1], f32[1]) all-to-all(p, q), replica_groups={{1,0},{2,3}}",
    )
    found = run_on(4, 1, text, NUMBERS)
    assert lists(found) == [([9], [9]), ([1], [0]), ([2], [3]), ([9], [9])]


@pytest.mark.parametrize(
    ("element", "values", "total"),
    [
        ("bf16", (256, 1, 1, 1), 260),  # in f32, and rounded once
        ("f16", (2048, 1, 1, 1), 2048),  # rounded every time
        ("f8e5m2", (8, 1, 1, 1), 12),
        ("s8", (100, 100, 1, 1), -54),
    ],
)
def test_sums_of_narrow_types_round_as_on_xla(
    element: str, values: tuple[int, ...], total: int
) -> None:
    types = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "s8": np.int8}
    dtype = types.get(element, ml_dtypes.float8_e5m2)
    text = entry(
        f"p = {element}[1] parameter(0)",
        f"ROOT r = {element}[1] all-reduce(p), replica_groups={{}}, to_apply=sum",
        element=element,
    )
    found = run_on(4, 1, text, [[np.array([value], dtype)] for value in values])
    assert all(array.dtype == dtype and array.tolist() == [total] for array in found)


def test_reductions_follow_the_order_of_the_ranks() -> None:
    text = entry(P1, "ROOT r = f32[1] all-reduce(p), replica_groups={{0,3,1,2}}, to_apply=sum")
    values = [[np.array([value], np.float32)] for value in (1e8, 1, 1, -1e8)]
    assert lists(run_on(4, 1, text, values)) == [[2]] * 4


def test_any_reduction_and_several_operands() -> None:
    text = entry(
        P1,
        "q = f32[1] constant({7})",
        "ROOT r = (f32[1], f32[1]) all-reduce(p, q), replica_groups={}, to_apply=sum",
        reduction="subtract",
    )
    assert lists(run_on(4, 1, text, NUMBERS)) == [([-6], [-14])] * 4


FORMS = {
    "{{0,2},{1,3}}": [[0, 2], [1, 3], [0, 2], [1, 3]],
    "[2,2]<=[4]": [[0, 1], [0, 1], [2, 3], [2, 3]],
    "[2,2]<=[2,2]T(1,0)": [[0, 2], [1, 3], [0, 2], [1, 3]],
    "mesh['a'=2,'b'=2] {'a'}": [[0, 2], [1, 3], [0, 2], [1, 3]],
    "mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}": [[1, 0], [1, 0], [3, 2], [3, 2]],
}


@pytest.mark.parametrize("groups", FORMS)
def test_all_forms_of_replica_groups(groups: str) -> None:
    text = entry(
        P1,
        f"ROOT r = f32[2] all-gather(p), channel_id=1, replica_groups={groups}, dimensions={{0}}, "
        "use_global_device_ids=true",
    )
    assert lists(run_on(1, 4, text, NUMBERS)) == FORMS[groups]


def test_a_broadcast_is_from_the_first_of_a_group() -> None:
    broadcast = "collective-broadcast(p), replica_groups={{2,0}}"
    found = run_on(4, 1, entry(P1, f"ROOT r = f32[1] {broadcast}"), NUMBERS)
    assert lists(found) == [[2], [0], [2], [0]]


# -- identities -----------------------------------------------------------------------------------

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


# -- permutes in place ----------------------------------------------------------------------------


def test_a_permute_in_place_writes_slices() -> None:
    text = entry(
        P4,
        "q = f32[4] constant({-1,-2,-3,-4})",
        "one = s32[] constant(1)",
        "two = s32[] constant(2)",
        "x = (s32[]) tuple(one)",
        "y = (s32[]) tuple(two)",
        "ROOT r = f32[4] collective-permute(p, q, x, y), source_target_pairs={{0,1}}, "
        "slice_sizes={{2}}",
    )
    found = run_on(4, 1, text, FOUR)
    assert lists(found) == [
        [-1, -2, -3, -4],
        [-1, -2, 1, 2],
        [-1, -2, -3, -4],
        [-1, -2, -3, -4],
    ]


def test_a_permute_in_place_of_several_slices() -> None:
    text = entry(
        P4,
        "q = f32[4] constant({-1,-2,-3,-4})",
        "zero = s32[] constant(0)",
        "two = s32[] constant(2)",
        "x0 = (s32[]) tuple(zero)",
        "x2 = (s32[]) tuple(two)",
        "x = ((s32[]), (s32[])) tuple(x0, x2)",
        "y = ((s32[]), (s32[])) tuple(x2, x0)",
        "ROOT r = f32[4] collective-permute(p, q, x, y), "
        "source_target_pairs={{0,1},{1,0},{0,1},{1,0}}, slice_sizes={{2},{1}}",
    )
    assert lists(run_on(2, 1, text, FOUR[:2])) == [[12, -2, 10, 11], [2, -2, 0, 1]]


# -- asynchronous forms ---------------------------------------------------------------------------

ASYNCHRONOUS = {
    "all-reduce": (
        "s = f32[4] all-reduce-start(p), replica_groups={}, to_apply=sum",
        "ROOT d = f32[4] all-reduce-done(s)",
        "f32[4] all-reduce(p), replica_groups={}, to_apply=sum",
    ),
    "all-gather": (
        "s = (f32[4], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}",
        "ROOT d = f32[16] all-gather-done(s)",
        "f32[16] all-gather(p), replica_groups={}, dimensions={0}",
    ),
    "collective-permute": (
        "s = (f32[4], f32[4], u32[], u32[]) collective-permute-start(p), "
        "source_target_pairs={{0,3},{3,1}}",
        "ROOT d = f32[4] collective-permute-done(s)",
        "f32[4] collective-permute(p), source_target_pairs={{0,3},{3,1}}",
    ),
    "two permutes": (
        "s = ((f32[4], f32[4]), (f32[4], f32[4])) collective-permute-start(p, p), "
        "source_target_pairs={{0,3},{3,1}}",
        "ROOT d = (f32[4], f32[4]) collective-permute-done(s)",
        "(f32[4], f32[4]) collective-permute(p, p), source_target_pairs={{0,3},{3,1}}",
    ),
    "reduce-scatter": (
        "s = ((f32[4]), f32[1]) reduce-scatter-start(p), replica_groups={}, dimensions={0}, "
        "to_apply=sum",
        "ROOT d = f32[1] reduce-scatter-done(s)",
        "f32[1] reduce-scatter(p), replica_groups={}, dimensions={0}, to_apply=sum",
    ),
    "all-to-all": (
        "s = ((f32[4]), f32[4]) all-to-all-start(p), replica_groups={}, dimensions={0}",
        "ROOT d = f32[4] all-to-all-done(s)",
        "f32[4] all-to-all(p), replica_groups={}, dimensions={0}",
    ),
}


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_asynchronous_forms_give_the_same(name: str) -> None:
    start, done, plain = ASYNCHRONOUS[name]
    found = run_on(4, 1, entry(P4, start, done), FOUR)
    assert lists(found) == lists(run_on(4, 1, entry(P4, f"ROOT r = {plain}"), FOUR))


WRONG = {
    "all-reduce(p), replica_groups={{0,1}}, to_apply=sum": "none of its .* has device 2",
    "all-reduce(p), replica_groups={{0,1,2,9}}, to_apply=sum": "replica 9, .* runs on 4 replicas",
    "all-reduce(p), replica_groups={{0,1,2,3,0}}, to_apply=sum": "name a device twice",
    "all-gather(p), replica_groups={}, dimensions={0}": r"f32\[1\], .* comes to f32\[4\]",
    "all-to-all(p), replica_groups={}, dimensions={0}": "1 elements, .* no 4 equal parts",
    "collective-permute(p), source_target_pairs={{7,1}}": "names replica 7",
    "collective-permute(p), source_target_pairs={{2,1},{3,1}}": "device 1 is the target of 2",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_cannot_be_run(line: str) -> None:
    with pytest.raises(RunError, match=WRONG[line]) as caught:
        run_on(4, 1, entry(P1, f"ROOT r = f32[1] {line}"), NUMBERS)
    assert caught.value.code == "HLO500"
    assert caught.value.span is not None


def test_a_start_is_done_once() -> None:
    text = entry(
        P1,
        "s = f32[1] all-reduce-start(p), replica_groups={}, to_apply=sum",
        "d = f32[1] all-reduce-done(s)",
        "ROOT e = f32[1] all-reduce-done(s)",
    )
    with pytest.raises(RunError, match="its operand is no all-reduce-start that is still open"):
        run_on(1, 1, text, NUMBERS[:1])
