"""What is measured: the files and the pipeline."""

from __future__ import annotations

import os
from pathlib import Path

PIPELINE = "simplify"
ROOT = Path(__file__).resolve().parent.parent
SMALL_FILE = ROOT / "testdata" / "fori_loop.before_optimizations.hlo"
"""What each process reads first, untimed."""
WHOLE_STEP = ROOT / "testdata" / "transformer_scan_8dev.after_spmd_partitioning.hlo"
MATMUL_SIZE = 1000


def shared_folder() -> Path:
    """$HLOOPT_SHARED, where the corpus and the means to run XLA are; it may be absent."""
    return Path(os.environ.get("HLOOPT_SHARED") or ROOT.parent / "shared")


def benchmark_files() -> list[Path]:
    """XLA's benchmark modules in $HLOOPT_SHARED where they are, else our own test data."""
    found = sorted((shared_folder() / "corpus" / "benchmarks").glob("*.hlo"))
    testdata = ROOT / "testdata"
    return found or sorted([*testdata.glob("*.hlo"), *testdata.glob("*.hlo.gz")])


def hundred_lines() -> str:
    """A module of exactly 100 lines: a chain of additions."""
    steps = [f"  add.{n} = f32[8]{{0}} add(add.{n - 1}, p)" for n in range(1, 95)]
    return "\n".join(
        [
            "HloModule hundred_lines",
            "",
            "ENTRY main {",
            "  p = f32[8]{0} parameter(0)",
            "  add.0 = f32[8]{0} add(p, p)",
            *steps[:-1],
            steps[-1].replace("add.94", "ROOT add.94", 1),
            "}",
            "",
        ]
    )
