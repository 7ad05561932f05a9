"""The real XLA:GPU compiler makes the same of programs with asynchronous work."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.comparison import differences
from tests.passes.async_ops.test_async_passes import CREATOR, program

from hloopt.files import read_module
from hloopt.ir import Module
from hloopt.ir.schedule import drop_schedule
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

pytestmark = [pytest.mark.oracle]

PASSES = {
    "async-collective-annotator": ["async-collective-conversion", "async-collective-creator"],
    "async-stream-attribute-wrapper": [],
    "explicit-collectives-group-async-wrapper": [],
    "explicit-stream-annotation-async-wrapper": [],
    "host-memory-transfer-asyncifier": [],
    "host_compute_asyncifier": [],
}
"""Passes by XLA's names, and what else has to be on for each to find work."""


@pytest.mark.parametrize("name", PASSES)
def test_passes_make_the_same_graph(name: str, compiler: Any) -> None:
    step = compiler.run_pass(program(2), name, target="h100_sxm", also=PASSES[name])[-1]
    assert step.before != step.after
    ours = parse_module(step.before)
    assert create_pass(name).run(ours, PassContext())
    theirs = parse_module(step.after)
    read_again = parse_module(print_module(ours))
    assert differences(without_dead(read_again), without_dead(theirs)) == []


MOST_DIFFERING = 0.01
"""The share of computations whose list orders differ in a few places, why is not known."""


@pytest.mark.slow
def test_schedules_for_memory_of_whole_steps_are_the_same(shared: Path, compiler: Any) -> None:
    folders = sorted((shared / "oracle" / "gpu").glob("*/sweep"))
    compared = differing_ones = 0
    for folder in folders:
        module = read_module(str(folder / "before_lhs.hlo.gz"))
        if module.instruction_count() > 10_000:
            continue  # minutes
        drop_schedule(module)
        text = print_module(module)
        differing_ones += len(differing(text, compiler))
        compared += sum(not c.is_fusion for c in module.computations.values())
    assert compared
    assert differing_ones <= MOST_DIFFERING * compared


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_the_schedule_for_memory_is_the_same(devices: int, compiler: Any) -> None:
    module = parse_module(program(devices))
    create_pass("async-collective-creator", CREATOR).run(module, PassContext())
    text = print_module(module)
    assert differing(text, compiler) == set()


def differing(text: str, compiler: Any) -> set[str]:
    """The computations that XLA:GPU's memory scheduler orders otherwise."""
    result = compiler.schedule(text, target="h100_sxm")
    (step,) = (s for s in result.steps if s.name == "latency-hiding-scheduler")
    module = parse_module(text)
    create_pass("hlo-memory-scheduler", {"preset": "xla-gpu"}).run(module, PassContext())
    found = set()
    for theirs in parse_module(step.before).computations.values():
        ours = module.computations[theirs.name]
        names = ([i.name for i in c.instructions] for c in (ours, theirs))
        if not theirs.is_fusion and operator.ne(*names):
            found.add(theirs.name)
    return found


def without_dead(module: Module) -> Module:
    """XLA leaves bodies of wrapped fusions behind; ours, which shares none, has others."""
    create_pass("dce").run(module, PassContext())
    return module
