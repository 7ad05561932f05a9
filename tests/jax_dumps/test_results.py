"""The interpreter computes what JAX computed, device by device, at each stage of compilation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.jax_dumps.dumps import STAGES, Dumps, proto_of

from hloopt.equivalence.agreement import first_difference
from hloopt.equivalence.placement import place
from hloopt.files import read_module
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value
from hloopt.xla.engine import run_with_xla

pytestmark = pytest.mark.oracle

PROGRAMS = ("rnn", "transformer", "transformer_bf16", "moe")
BF16_KEEPS_MORE = 2e-3
"""Of the largest value: what JAX may be off with bf16 before optimizations, since XLA leaves out
conversions to bf16 and back. The optimized module is without them too, and agrees more closely."""


@pytest.fixture(params=PROGRAMS)
def dumps(request: pytest.FixtureRequest, dumps_of: Callable[[str], Dumps]) -> Dumps:
    return dumps_of(request.param)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("as_proto", [False, True], ids=["text", "proto"])
def test_a_module_computes_what_jax_computed(dumps: Dumps, stage: str, as_proto: bool) -> None:
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    path = dumps.stages[stage]
    placement = place(read_module(str(proto_of(path) if as_proto else path)))
    assert dumps.is_partitioned(stage) == (not placement.is_whole)
    part = "" if dumps.is_partitioned(stage) else "whole_"
    inputs, outputs = (dumps.arrays(f"{part}{name}") for name in ("inputs", "outputs"))
    if placement.is_whole:  # on several devices where it has manual regions
        count = placement.grid.device_count
        assert count == (8 if dumps.program == "moe" else 1)
        inputs, outputs = inputs * count, outputs * count
    assert len(inputs) == placement.grid.device_count
    found = run_module(placement.program, inputs, devices=placement.devices)
    is_early_bf16 = dumps.program == "transformer_bf16" and list(STAGES).index(stage) < 3
    assert_close(found, outputs, BF16_KEEPS_MORE if is_early_bf16 else None)


@pytest.mark.parametrize("stage", ["after_partitioning", "after_optimizations"])
def test_the_xla_engine_computes_what_jax_computed(dumps: Dumps, stage: str) -> None:
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    inputs = dumps.arrays("inputs")
    module = read_module(str(dumps.stages[stage]))
    found = run_with_xla(module, inputs, devices_of(1, len(inputs)))
    assert_close(found, dumps.arrays("outputs"))


def test_another_last_input_on_one_device_is_told_apart(dumps: Dumps) -> None:
    *state, last = dumps.arrays("inputs")[0]
    assert isinstance(last, np.ndarray)
    inputs = [[*state, np.zeros_like(last)], *dumps.arrays("inputs")[1:]]
    module = read_module(str(dumps.stages["after_optimizations"]))
    found = run_module(module, inputs, devices=devices_of(1, len(inputs)))
    for ours, theirs in zip(found, dumps.arrays("outputs"), strict=True):  # all share gradients
        assert first_difference(ours, tuple(theirs)) is not None


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
