"""Results of collectives: sizes, order of the ranks, groups."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.interpreter.devices.arrays import FOUR, NUMBERS, P1, P4, lists
from tests.interpreter.several_devices import entry, run_on

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
