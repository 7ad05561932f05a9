"""Buffer assignments and orders of small modules are those that XLA:CPU made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.memory.schedulers import Algorithm, schedule_module
from hloopt.text import parse_module
from memory_lib.cpu import CpuResult, compare_cpu, cpu_records
from memory_lib.schedules import ALGORITHMS

_SMALL = 1000  # characters; tests/oracle compares larger ones, too


@pytest.fixture(scope="module")
def results(shared: Path) -> list[CpuResult]:
    small = (record for record in cpu_records(shared / "oracle") if len(record[1]) <= _SMALL)
    return [compare_cpu(*record) for record in small]


def test_allocations_statistics_ranges_and_heap_traces_are_those_of_xla(
    results: list[CpuResult],
) -> None:
    assert len(results) > 200
    assert {result.id: result.wrong for result in results if result.wrong} == {}


def test_each_value_lies_at_the_offset_that_xla_gives_it(results: list[CpuResult]) -> None:
    assert [result.id for result in results if result.right_offsets != result.offsets] == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_orders_of_memory_schedulers_are_those_of_xla(algorithm: Algorithm, shared: Path) -> None:
    lines = (shared / "oracle" / "memory_tests" / "schedules.jsonl").read_text(encoding="utf-8")
    records = map(json.loads, lines.splitlines())
    small = [record for record in records if len(record["module"]) <= _SMALL]
    assert len(small) > 100
    for record in small:
        found = schedule_module(parse_module(record["module"]), algorithm).orders
        names = {c.name: [i.name for i in order] for c, order in found.items()}
        assert {name: names.get(name) for name in record[algorithm]} == record[algorithm]
