"""Pipelines that follow XLA's on a transformer's training step of JAX, on 1, 2 and 4 devices."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hloopt.cli import main

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.fixture(scope="module", params=[(1, 1), (2, 1), (2, 2)], ids=["1", "2", "4"])
def step(
    request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The step in double precision, as sums are taken in another order."""
    pytest.importorskip("jax", reason="needs the extra xla")
    fsdp, tp = request.param
    environment = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={fsdp * tp}",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(str(root / name) for name in ("src", "tools")),
    }
    script = Path(__file__).with_name("transformer_step.py")
    done = subprocess.run(
        [sys.executable, str(script), str(fsdp), str(tp)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    path = tmp_path_factory.mktemp("step") / "step.hlo"
    path.write_text(re.sub(r"\bf32\[", "f64[", done.stdout), encoding="utf-8")
    return path


@pytest.mark.parametrize("pipeline", ["xla-cpu-simplification", "xla-gpu-optimization"])
def test_the_step_computes_the_same(
    pipeline: str, step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = tmp_path / "after.hlo"
    chosen = ["-p", pipeline, "--validate", "--seeds", "1", "-o", str(after)]
    assert main(["opt", str(step), *chosen]) == 0
    assert "validated: the module computes what it did" in capsys.readouterr().err
    assert main(["verify", str(after)]) == 0
