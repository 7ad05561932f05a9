"""The real XLA:GPU compiler makes the same of programs with asynchronous work."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.test_pass_pairs import differences
from tests.passes.test_async_passes import CREATOR, program

from hloopt.ir import Module
from hloopt.passes.base import PassContext
from hloopt.passes.registry import create_pass
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


@pytest.fixture(scope="module")
def compiler(shared: Path) -> Any:
    """The driver of XLA:GPU; skips where the packages that hold the compiler are missing."""
    if "XLA_GPU_PYTHON" not in os.environ:
        pytest.skip("set XLA_GPU_PYTHON to a Python that has XLA:GPU (oracle/XLA_GPU.md)")
    sys.path.insert(0, str(shared / "oracle"))
    try:
        import xla_gpu  # type: ignore[import-not-found, unused-ignore]  # beside the data
    finally:
        sys.path.pop(0)
    return xla_gpu


@pytest.mark.parametrize("name", PASSES)
def test_passes_make_the_same_graph(name: str, compiler: Any) -> None:
    step = compiler.run_pass(program(2), name, target="h100_sxm", also=PASSES[name])[-1]
    assert step.before != step.after
    ours = parse_module(step.before)
    assert create_pass(name).run(ours, PassContext())
    theirs = parse_module(step.after)
    read_again = parse_module(print_module(ours))
    assert differences(without_dead(read_again), without_dead(theirs)) == []


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_the_schedule_for_memory_is_the_same(devices: int, compiler: Any) -> None:
    module = parse_module(program(devices))
    create_pass("async-collective-creator", CREATOR).run(module, PassContext())
    text = print_module(module)
    result = compiler.schedule(text, target="h100_sxm")
    (step,) = (s for s in result.steps if s.name == "latency-hiding-scheduler")
    module = parse_module(text)
    create_pass("hlo-memory-scheduler", {"preset": "xla-gpu"}).run(module, PassContext())
    for computation in parse_module(step.before).computations.values():
        if not computation.is_fusion and computation.name in module.computations:
            ours = module.computations[computation.name].instructions
            assert [i.name for i in ours] == [i.name for i in computation.instructions]


def without_dead(module: Module) -> Module:
    """XLA leaves bodies of wrapped fusions behind; ours, which shares none, has others."""
    create_pass("dce").run(module, PassContext())
    return module
