"""What we print, every instruction written anew, is the same module to real XLA."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.oracle]


def roundtrip(shared: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    script = shared / "oracle" / "roundtrip.py"
    command = [sys.executable, str(script), "--corpus", str(shared / "corpus"), *arguments]
    return subprocess.run(
        [*command, "--py", "hloopt:roundtrip_text"], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("level", ["canonical", "full"])
def test_every_benchmark_module_comes_back(shared: Path, level: str) -> None:
    result = roundtrip(shared, "--kinds", "benchmark", "--level", level)
    assert result.returncode == 0, result.stdout
    assert "11 pass, 0 fail" in result.stdout, result.stdout


def test_every_module_xla_reads_comes_back(shared: Path) -> None:
    result = roundtrip(shared)
    reads = next(line for line in result.stdout.splitlines() if "(XLA reads)" in line)
    assert ", 0 fail," in reads, result.stdout
