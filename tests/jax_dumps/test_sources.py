"""Reports name the line of the program for what a real compilation costs and keeps in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.jax_dumps.dumps import STAGES, Dumps, proto_of

from hloopt.files import read_module
from hloopt.ir import Module
from hloopt.reports.cost.findings import CostReport, analyze_cost, grouped
from hloopt.reports.memory.groups import grouped as grouped_buffers
from hloopt.reports.memory.model import memory_report
from hloopt.reports.sources import NO_SOURCE
from hloopt.targets import load_target

pytestmark = pytest.mark.oracle

LEAST_NAMED = 0.95


@pytest.fixture(params=["rnn", "transformer", "moe"])
def dumps(request: pytest.FixtureRequest, dumps_of: Callable[[str], Dumps]) -> Dumps:
    return dumps_of(request.param)


def _cost(module: Module) -> CostReport:
    return analyze_cost(module, load_target("h100_sxm"))


@pytest.mark.parametrize("stage", STAGES)
def test_flops_and_bytes_have_a_line(dumps: Dumps, stage: str) -> None:
    path = dumps.stages.get(stage)
    if path is None:
        pytest.skip("the program runs on one device")
    report = _cost(read_module(str(path)))
    groups = grouped(report, "source")
    named = [group for group in groups if group.label != NO_SOURCE]
    assert sum(group.flops for group in groups) == report.total.flops
    assert sum(group.flops for group in named) >= LEAST_NAMED * report.total.flops
    assert sum(group.bytes_accessed for group in named) >= LEAST_NAMED * report.total.bytes_accessed
    lines = [group for group in named if not group.label.startswith("(argument)")]
    assert sum(group.flops for group in lines) >= LEAST_NAMED * report.total.flops
    assert {group.label.rpartition(":")[0] for group in lines} <= _files(dumps)


def _files(dumps: Dumps) -> set[str]:
    """The files that the programs are in."""
    text = dumps.stages["after_optimizations"].read_text()
    table = text[text.index("FileNames") : text.index("FunctionNames")]
    return {line.split('"')[1] for line in table.splitlines() if '"' in line}


@pytest.mark.parametrize("stage", STAGES)
def test_memory_has_a_line_or_is_an_argument(dumps: Dumps, stage: str) -> None:
    path = dumps.stages.get(stage)
    if path is None:
        pytest.skip("the program runs on one device")
    report = memory_report(read_module(str(path)))
    groups = grouped_buffers(report.live_at_peak, "source")
    named = sum(group.size for group in groups if group.label != NO_SOURCE)
    assert named >= LEAST_NAMED * sum(group.size for group in groups)
    for buffer in report.live_at_peak:
        is_argument = buffer.kind == "parameter"
        assert not is_argument or buffer.source.label == f"(argument) {buffer.op_name}"


@pytest.mark.parametrize("stage", ["before_optimizations", "after_optimizations"])
def test_text_and_proto_name_the_same_lines(dumps: Dumps, stage: str) -> None:
    text = dumps.stages[stage]
    assert _by_line(text) == _by_line(proto_of(text))


def _by_line(path: Path) -> dict[str, tuple[int, int]]:
    return {
        group.label: (group.flops, group.bytes_accessed)
        for group in grouped(_cost(read_module(str(path))), "source")
    }


def test_matrix_products_are_at_their_lines_at_every_stage(dumps: Dumps) -> None:
    """Most flops stay at the line where they were before XLA touched the module."""
    if not dumps.is_partitioned("before_optimizations"):
        pytest.skip("flops before partitioning are those of all devices")
    before = _by_line(dumps.stages["before_optimizations"])
    after = _by_line(dumps.stages["after_optimizations"])
    total = sum(flops for flops, _ in after.values())
    same = sum(min(flops, before.get(line, (0, 0))[0]) for line, (flops, _) in after.items())
    assert same >= 0.9 * total
