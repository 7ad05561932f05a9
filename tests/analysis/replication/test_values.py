"""Values that devices have in common: of collectives, parameters, infeeds, tables."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysis.replication.replicated import REPLICATED, entry, find, replicated

from hloopt.analysis.replication import ReplicationAnalysis
from hloopt.ir import Module


def in_groups(module: Module, name: str, *groups: tuple[int, ...], **options: Any) -> bool:
    analysis = ReplicationAnalysis(module, partial_replication=True, **options)
    return analysis.is_replicated(find(module, name), groups=groups)


# -- collectives ------------------------------------------------------------------------------
def all_reduce(attributes: str, operand: str = "p") -> str:
    return f"ROOT r = f32[] all-reduce({operand}), to_apply=sum, {attributes}"


@pytest.mark.parametrize(
    ("groups", "wanted"), [("{{0,1},{2,3}}", True), ("{{0},{1,2,3}}", False), ("{}", True)]
)
def test_sums_of_one_value_are_equal_in_groups_of_one_size(groups: str, wanted: bool) -> None:
    parameter = f"p = f32[] parameter(0), {REPLICATED}"
    module = entry(parameter, all_reduce(f"replica_groups={groups}"), replicas=4)
    assert replicated(module, "r") is wanted


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", True),  # of each partition both replicas
        ("{{0,2},{1,3},{4,6},{5,7}}", True),
        ("{{0,2},{4,6},{1,5},{3,7}}", False),  # partition 0 has replicas 0 and 1, partition 1 …
    ],
)
def test_groups_of_devices_have_to_look_alike_from_each_device(groups: str, wanted: bool) -> None:
    parameter = "p = f32[] parameter(0), sharding={replicated}"
    line = all_reduce(f"channel_id=1, use_global_device_ids=true, replica_groups={groups}")
    module = entry(parameter, line, replicas=4, partitions=2)
    assert replicated(module, "r", cross_partition_spmd=True) is wanted


def test_sums_over_replicas_agree_on_partitions_that_agree_in_all_replicas() -> None:
    gather = "channel_id=1, use_global_device_ids=true, dimensions={0}, replica_groups="
    module = entry(
        "p = f32[1] parameter(0)",
        # Of replica 0 partitions {0,1} and {2,3}, of replica 1 {0,1,2} and {3}.
        f"g = f32[4] all-gather(p), {gather}{{{{0,1}},{{2,3}},{{4,5,6}},{{7}}}}",
        "ROOT r = f32[4] all-reduce(g), to_apply=sum, replica_groups={}",
        replicas=2,
        partitions=4,
    )
    assert in_groups(module, "r", (0, 1), cross_partition_spmd=True)
    assert not in_groups(module, "r", (2, 3), cross_partition_spmd=True)


def test_groups_of_replicas_with_all_partitions() -> None:
    line = all_reduce("channel_id=1, replica_groups={{0,1},{2,3}}")
    module = entry("p = f32[] parameter(0)", line, replicas=4, partitions=2)
    assert replicated(module, "r", cross_partition_spmd=True)
    assert not replicated(module, "r", partial_replication=True)
    assert in_groups(module, "r", (0, 1), (2, 3))


@pytest.mark.parametrize("groups", ["[1073741824,4294967296]<=[4611686018427387904]", "[1,8]<=[8]"])
@pytest.mark.parametrize("ids", ["", ", use_global_device_ids=true"])
def test_formulas_for_any_number_of_devices_are_answered_at_once(groups: str, ids: str) -> None:
    line = all_reduce(f"channel_id=1, replica_groups={groups}{ids}")
    module = entry("p = f32[] parameter(0)", line, replicas=1_000_000_000, partitions=2_000_000)
    in_groups(module, "r", (0, 1))
    in_groups(module, "r", (0, 1), cross_partition_spmd=True)


def test_asynchronous_collectives_are_not_followed() -> None:
    module = entry(
        f"p = f32[] parameter(0), {REPLICATED}",
        "s = f32[] all-reduce-start(p), to_apply=sum, replica_groups={}",
        "ROOT d = f32[] all-reduce-done(s)",
        replicas=2,
    )
    assert not replicated(module, "d")
    assert not replicated(module, "_c")  # an instruction of a reducer


# -- parameters, infeeds, tables -----------------------------------------------------------------
@pytest.mark.parametrize(
    ("annotations", "on_replicas", "on_partitions"),
    [
        ("", False, False),
        ("sharding={replicated}", False, True),
        ("sharding={devices=[1,2]<=[2] last_tile_dim_replicate}", False, True),
        ("sharding={mesh['x'=2], [{}]}", False, True),
        ("sharding={mesh['x'=2], [{'x'}]}", False, False),
        ("sharding={maximal device=0}", False, False),
        ("parameter_replication={true}", True, False),
        ("parameter_replication={false}, sharding={replicated}", False, False),
        ("parameter_replication={true}, sharding={replicated}", True, True),
    ],
)
def test_parameters_are_known_by_their_annotations(
    annotations: str, on_replicas: bool, on_partitions: bool
) -> None:
    line = f"ROOT p = f32[4] parameter(0){', ' if annotations else ''}{annotations}"
    module = entry(line, replicas=2, partitions=2)
    assert replicated(module, "p") is on_replicas
    assert replicated(module, "p", cross_partition_spmd=True) is on_partitions


def test_leaves_of_a_parameter_have_annotations_of_their_own() -> None:
    shape = "((f32[4], f32[4]), f32[4])"
    flags = "parameter_replication={true,false,true}"
    module = entry(f"ROOT p = {shape} parameter(0), {flags}", replicas=2)
    indices: list[tuple[int, ...]] = [(0, 0), (0, 1), (0,), (1,), ()]
    found = [replicated(module, "p", index) for index in indices]
    assert found == [True, False, False, True, False]
    with pytest.raises(IndexError):
        replicated(module, "p", (2,))


def test_infeeds_are_known_by_their_sharding() -> None:
    module = entry(
        "t = token[] after-all()",
        "ROOT i = ((f32[4], f32[4]), token[]) infeed(t),"
        " sharding={{replicated}, {devices=[2]<=[2]}, {maximal device=0}}",
        partitions=2,
    )
    assert replicated(module, "i", (0, 0), cross_partition_spmd=True)
    assert not replicated(module, "i", (0, 1), cross_partition_spmd=True)
    assert not replicated(module, "i", (0, 0))


@pytest.mark.parametrize(
    ("table", "groups", "wanted"),
    [
        ("s32[4] constant({0,0,7,7})", [(0, 1), (2, 3)], True),
        ("s32[4] constant({0,0,7,7})", [(1, 2)], False),
        ("s32[2] constant({5,6})", [(1, 2, 3)], True),  # indices are clamped
        ("s32[4] constant({...})", [(0, 1)], False),
        ("s64[4] constant({0,0,7,7})", [(0, 1)], False),
    ],
)
def test_tables_read_at_the_own_number(
    table: str, groups: list[tuple[int, ...]], wanted: bool
) -> None:
    element = table.partition("[")[0]
    module = entry(
        "id = u32[] partition-id()",
        f"table = {table}",
        f"ROOT d = {element}[1] dynamic-slice(table, id), dynamic_slice_sizes={{1}}",
        partitions=4,
    )
    assert in_groups(module, "d", *groups, cross_partition_spmd=True) is wanted
    assert replicated(module, "d")  # across replicas, the number of the partition is the same
    assert not replicated(module, "d", cross_partition_spmd=True)


def test_copies_of_tuples_have_the_agreement_of_each_element() -> None:
    module = entry(
        f"p = f32[] parameter(0), {REPLICATED}",
        "q = f32[] parameter(1)",
        "t = (f32[], f32[]) tuple(p, q)",
        "ROOT c = (f32[], f32[]) copy(t)",
        replicas=2,
    )
    assert replicated(module, "c", (0,))
    assert not replicated(module, "c", (1,))
    assert not replicated(module, "t")


def test_operands_may_stand_behind_their_users() -> None:
    module = entry("c = f32[] constant(1)", "ROOT n = f32[] negate(c)", replicas=2)
    module.entry.reorder(reversed(list(module.entry.instructions)))
    assert replicated(module, "n")
