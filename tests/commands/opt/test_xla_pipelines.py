"""`hloopt opt` with the pipelines that follow XLA's own: steps compute what they did."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("pipeline", ["xla-cpu-simplification", "xla-gpu-optimization"])
@pytest.mark.parametrize(
    "name",
    [
        "branches.before_optimizations",
        "fori_loop.before_optimizations",
        "mlp_psum_8dev.after_spmd_partitioning",
    ],
)
def test_steps_compute_the_same(
    name: str, pipeline: str, root: Path, tmp_path: Path, capsys: Capture
) -> None:
    """In double precision, as sums are taken in another order."""
    before, after = tmp_path / "step.hlo", tmp_path / "after.hlo"
    text = (root / "testdata" / f"{name}.hlo").read_text(encoding="utf-8")
    before.write_text(re.sub(r"\bb?f(16|32)\[", "f64[", text), encoding="utf-8")
    chosen = ["-p", pipeline, "--validate", "--seeds", "1", "-o", str(after)]
    assert main(["opt", str(before), *chosen]) == 0
    assert "validated: the module computes what it did" in capsys.readouterr().err
    assert main(["verify", str(after)]) == 0
