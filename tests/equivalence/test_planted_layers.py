"""`numerics` names the operation of a step of training that was changed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.equivalence.planted_layers import PLANTS, Planted

from hloopt.equivalence import RunSettings
from hloopt.equivalence.numerics import Numerics, localize
from hloopt.files import load
from hloopt.ir.sources.source_stacks import op_name_of

STEPS = (
    "transformer_scan_8dev.after_spmd_partitioning.hlo",
    "transformer_unrolled_8dev.after_spmd_partitioning.hlo.gz",
    "transformer_scan_8dev.before_optimizations.hlo",
    "transformer_scan_8dev.after_optimizations.hlo.gz",
    "transformer_unrolled_8dev.before_optimizations.hlo.gz",
)


def names(found: Numerics, planted: Planted) -> bool:
    """Whether the answer names the changed operation, or its op_name: by itself, or as the operand
    that is other."""
    origin = found.origin
    if origin is None:
        return False
    before = origin.errors.before
    operands = [change.before.rpartition("%")[2] for change in origin.operands]
    return planted.instruction in (before.name, *operands) or (
        bool(planted.op_name) and planted.op_name == op_name_of(before)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.whole) for seed in range(5, 10))]
)
def test_the_changed_operation_is_named(seed: int, root: Path) -> None:
    file = str(root / "testdata" / STEPS[seed % len(STEPS)])
    changed = load(file)
    planted = PLANTS[seed % len(PLANTS)](changed, random.Random(seed))
    found = localize(load(file), changed, RunSettings(seeds=1))
    assert names(found, planted), (planted, found.origin)
