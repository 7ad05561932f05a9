"""`memory` and `cost` give the numbers of JAX's `memory_analysis()` and `cost_analysis()`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.jax_dumps.dumps import Dumps, proto_of

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.model import Cost
from hloopt.cli import main
from hloopt.files import read_module
from hloopt.ir import Module, Opcode

pytestmark = pytest.mark.oracle

BOUND_TO_ARGUMENTS = ("argument", "output", "alias")


@pytest.fixture(params=["rnn", "transformer", "moe"])
def dumps(request: pytest.FixtureRequest, dumps_of: Callable[[str], Dumps]) -> Dumps:
    return dumps_of(request.param)


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """The one report of a command as JSON."""

    def get(command: str, path: Path, *options: str, code: int = 0) -> Any:
        assert main([*command.split(), str(path), "--format", "json", *options]) == code
        (found,) = json.loads(capsys.readouterr().out)
        return found

    return get


def _both(text: Path) -> tuple[Path, Path]:
    return text, proto_of(text)


@pytest.mark.parametrize("stage", ["after_scheduling", "after_optimizations"])
def test_memory_is_that_of_jax(dumps: Dumps, stage: str, report: Callable[..., Any]) -> None:
    for path in _both(dumps.stages[stage]):
        found = report("memory", path)
        assert found["doubts"] == []
        sizes = found["statistics"]
        for what in (*BOUND_TO_ARGUMENTS, "temp"):
            key = f"{what}_size_in_bytes"
            assert sizes[key] == dumps.memory[key], key
        # XLA:CPU forgets its temporaries before it computes a peak.
        assert dumps.memory["peak_memory_in_bytes"] == found["throughout"]
        assert found["throughout"] < sizes["peak_memory_in_bytes"] <= sizes["total"]
        needed = sizes["total"] + sizes["constant"]
        assert report("memory", path, "--limit", f"{needed}B")["fit"]["fits"] is True
        assert report("memory", path, "--limit", f"{needed - 1}B", code=1)["fit"]["fits"] is False


def test_arguments_and_results_are_known_before_buffers_are_assigned(
    dumps: Dumps, report: Callable[..., Any]
) -> None:
    for stage in dumps.stages:
        if dumps.is_partitioned(stage):
            sizes = report("memory", dumps.stages[stage])["statistics"]
            for what in BOUND_TO_ARGUMENTS:
                key = f"{what}_size_in_bytes"
                assert sizes[key] == dumps.memory[key], (stage, key)


def test_cost_is_that_of_jax(dumps: Dumps, report: Callable[..., Any]) -> None:
    for path in _both(dumps.stages["after_optimizations"]):
        module = read_module(str(path))
        costs = CostAnalysis(module, as_xla=True)
        once = costs.module()
        assert once.flops == dumps.cost["flops"]
        assert once.transcendentals == dumps.cost["transcendentals"]
        assert once.bytes_accessed == dumps.cost["bytes accessed"]
        found = report("cost", path)
        assert found["flops"] == _with_trips(module, costs, lambda cost: cost.flops, dumps)
        assert found["bytes_accessed"] == _with_trips(
            module, costs, lambda cost: cost.bytes_accessed, dumps
        )


TRIPS = {"rnn": 24, "transformer": 4}
"""Of the two loops of a program: XLA counts one trip, the program runs all."""


def _with_trips(
    module: Module, costs: CostAnalysis, of: Callable[[Cost], int], dumps: Dumps
) -> int:
    """What XLA counts, and the trips that it does not."""
    loops = list(module.instructions(Opcode.WHILE))
    assert len(loops) == (2 if dumps.program in TRIPS else 0)
    total = of(costs.module())
    for loop in loops:
        body, condition = (of(costs.computation(called)) for called in loop.called)
        trips = TRIPS[dumps.program]
        total += (trips - 1) * body + trips * condition
    return total


@pytest.mark.parametrize(
    "command", ["memory", "cost", "schedule --target h100_sxm", "analyze loops", "verify"]
)
def test_text_and_proto_give_the_same_report(
    dumps: Dumps, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in dumps.stages.values():
        found = []
        for file in _both(path):
            assert main([*command.split(), str(file)]) == 0
            found.append(capsys.readouterr().out)
        assert found[0] == found[1], path.name
