"""The modules of testdata/: XLA's optimizations left their meaning as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.equivalence.agreement import first_difference
from hloopt.files import read_module
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"

PAIRS = [
    ("fori_loop.before_optimizations.hlo", "fori_loop.after_optimizations.hlo"),
    ("branches.before_optimizations.hlo", "branches.after_optimizations.hlo"),
    ("mlp_psum_8dev.after_spmd_partitioning.hlo", "mlp_psum_8dev.after_optimizations.hlo"),
    ("ring_matmul_8dev.after_spmd_partitioning.hlo", "ring_matmul_8dev.after_optimizations.hlo"),
]
"""Forms of one program with the same parameters, those on several devices all partitioned."""


def outputs(name: str, seed: int) -> list[Value]:
    """What each device makes of reproducible inputs of its own."""
    module = read_module(str(TESTDATA / name))
    devices = devices_of(module.replica_count, module.num_partitions)
    arguments = [Inputs().arguments(module.entry, device, seed) for device in devices]
    return run_module(module, arguments, devices=devices)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_optimized_programs_are_the_same(before: str, after: str, seed: int) -> None:
    difference = first_difference(tuple(outputs(before, seed)), tuple(outputs(after, seed)))
    assert difference is None


def test_different_programs_differ() -> None:
    """What the test above relies on: inputs that show a difference."""
    module = read_module(str(TESTDATA / "fori_loop.before_optimizations.hlo"))
    (device,) = devices_of(1, 1)
    first, second = (Inputs().arguments(module.entry, device, seed) for seed in (0, 1))
    left, right = (run_module(module, [arguments]) for arguments in (first, second))
    assert first_difference(tuple(left), tuple(right)) is not None
