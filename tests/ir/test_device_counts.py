"""For how many devices a text is that does not say so."""

from __future__ import annotations

import pytest
from tests.interpreter.several_devices import entry

from hloopt.ir.devices.device_counts import device_counts
from hloopt.text import parse_module

_SUM = "f32[8] all-reduce(p), to_apply=sum"
_PERMUTE = "f32[8] collective-permute(p), source_target_pairs={{0,1},{1,2}}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("f32[8] negate(p)", (1, 1)),
        (f"{_SUM}, replica_groups={{}}", (1, 1)),
        (f"{_SUM}, replica_groups={{{{0,3}},{{1,2}}}}", (4, 1)),
        (f"{_SUM}, replica_groups={{{{0,3}},{{1,2}}}}, channel_id=1", (4, 1)),
        (f"{_SUM}, replica_groups=[2,3]<=[6], channel_id=1, use_global_device_ids=true", (1, 6)),
        (_PERMUTE, (3, 1)),
        (f"{_PERMUTE}, channel_id=1", (1, 3)),
        ("f32[32] all-gather(p), replica_groups={}, dimensions={0}", (4, 1)),
        ("f32[2] reduce-scatter(p), replica_groups={}, dimensions={0}, to_apply=sum", (4, 1)),
    ],
)
def test_collectives_say_how_many_there_are(line: str, expected: tuple[int, int]) -> None:
    module = parse_module(entry("p = f32[8] parameter(0)", f"ROOT r = {line}"))
    assert device_counts(module) == expected


def test_replicas_where_one_collective_numbers_them() -> None:
    lines = (f"a = {_PERMUTE}, channel_id=1", f"ROOT b = {_SUM}, replica_groups={{{{0,1}}}}")
    assert device_counts(parse_module(entry("p = f32[8] parameter(0)", *lines))) == (3, 1)


def test_a_header_that_says_enough_counts() -> None:
    text = entry("p = f32[8] parameter(0)", f"ROOT r = {_PERMUTE}, channel_id=1")
    header = "HloModule m, replica_count=2, num_partitions=4"
    assert device_counts(parse_module(text.replace("HloModule m", header))) == (2, 4)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["replica-id"], (2, 1)),
        (["partition-id"], (1, 2)),
        (["replica-id", "partition-id"], (1, 2)),
    ],
)
def test_flattened_ids_are_of_what_the_program_asks_for(
    asked: list[str], expected: tuple[int, int]
) -> None:
    numbers = [f"{opcode.replace('-', '.')} = u32[] {opcode}()" for opcode in asked]
    reduce = (
        f"ROOT r = {_SUM}, replica_groups={{{{0,1}}}}, channel_id=1, use_global_device_ids=true"
    )
    module = parse_module(entry("p = f32[8] parameter(0)", *numbers, reduce))
    assert device_counts(module) == expected
