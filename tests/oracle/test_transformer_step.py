"""The interpreter computes a sharded transformer step as JAX does, device by device."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hloopt.interpreter.comparison import first_difference
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value
from hloopt.ir import Module, Opcode
from hloopt.text import parse_module
from hloopt.xla.engine import run_with_xla

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SCRIPT = Path(__file__).with_name("transformer_run.py")
SIZES = {
    **{"batch": 8, "sequence": 6, "vocabulary": 32, "model": 16},
    **{"heads": 2, "head": 8, "hidden": 32},
}
CONFIGS: dict[str, dict[str, Any]] = {
    "scan, f32": {"layers": 3, "scan": True, "compute_dtype": "float32"},
    "unrolled, bf16": {"layers": 1, "scan": False, "compute_dtype": "bfloat16"},
}
DEVICES = 8
BF16_KEEPS_MORE = 2e-3
"""Of the largest value: what JAX may be off with bf16, since XLA leaves out conversions to bf16 and
back. The optimized module is without them too, and agrees more closely."""


class Step(NamedTuple):
    """What JAX computed, and the modules it came from by stage."""

    modules: dict[str, Module]
    inputs: list[list[Value]]
    """By device and parameter."""
    outputs: list[list[Value]]
    whole_inputs: list[Value]
    whole_outputs: list[Value]


@pytest.fixture(scope="module", params=CONFIGS.values(), ids=list(CONFIGS))
def step(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Step:
    pytest.importorskip("jax", reason="needs the extra xla")
    from make_testdata import child_environment, read_dump

    folder = tmp_path_factory.mktemp("step")
    config = json.dumps(request.param | SIZES)
    done = subprocess.run(
        [sys.executable, "-P", str(SCRIPT), str(folder / "answer"), config],
        env=child_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stages = ("before_optimizations", "after_spmd_partitioning", "after_optimizations")
    modules = {stage: parse_module(read_dump(folder, stage)) for stage in stages}
    return Step(modules, **pickle.loads((folder / "answer").read_bytes()))


def test_the_partitioned_step_is_that_of_jax(step: Step) -> None:
    module = step.modules["after_spmd_partitioning"]
    assert any(module.instructions(Opcode.ALL_GATHER))
    found = run_module(module, step.inputs, devices=devices_of(1, DEVICES))
    assert_close(found, step.outputs, BF16_KEEPS_MORE if _is_bf16(module) else None)


def test_the_optimized_step_is_that_of_jax(step: Step) -> None:
    module = step.modules["after_optimizations"]
    assert any(module.instructions(Opcode.FUSION))
    found = run_module(module, step.inputs, devices=devices_of(1, DEVICES))
    assert_close(found, step.outputs)


def test_the_step_on_one_device_is_that_of_jax_on_all(step: Step) -> None:
    module = step.modules["before_optimizations"]
    found = run_module(module, [step.whole_inputs], devices=devices_of(1, 1))
    assert_close(found, [step.whole_outputs], BF16_KEEPS_MORE if _is_bf16(module) else None)


@pytest.mark.parametrize("stage", ["after_spmd_partitioning", "after_optimizations"])
def test_the_xla_engine_does_what_jax_does(step: Step, stage: str) -> None:
    found = run_with_xla(step.modules[stage], step.inputs, devices_of(1, DEVICES))
    assert_close(found, step.outputs)


def test_other_tokens_on_one_device_are_told_apart(step: Step) -> None:
    *state, tokens = step.inputs[0]
    inputs = [[*state, np.zeros_like(tokens)], *step.inputs[1:]]
    module = step.modules["after_spmd_partitioning"]
    found = run_module(module, inputs, devices=devices_of(1, DEVICES))
    for ours, theirs in zip(found, step.outputs, strict=True):  # all devices share gradients
        assert first_difference(ours, tuple(theirs)) is not None


def _is_bf16(module: Module) -> bool:
    return any(i.shape.type_name == "bf16" for i in module.instructions())


def assert_close(
    found: Sequence[Value], expected: Sequence[Sequence[Value]], tolerance: float | None = None
) -> None:
    """The arrays of each device, up to the usual tolerance or a part of their largest value."""
    for device, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if tolerance is None:
            assert first_difference(ours, tuple(theirs)) is None, device
            continue
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * np.abs(other).max())
