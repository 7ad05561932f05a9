"""Inputs of the benchmarks: the files and the pipeline."""

from __future__ import annotations

import os
from pathlib import Path

PIPELINE = "simplify"
ROOT = Path(__file__).resolve().parent.parent
SMALL_FILE = ROOT / "testdata" / "mlp_psum_8dev.after_optimizations.hlo"
"""The file that each process reads first, untimed."""
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


def largest_sweep() -> Path | None:
    """The largest of the modules that XLA:GPU scheduled for the record; None where they are not."""
    found = _largest_record("sweep/before_lhs.hlo.gz")
    return found and found.parent


def largest_pipelined(direction: str) -> Path | None:
    """The largest of the modules whose loops XLA:GPU pipelined for the record; None as above."""
    return _largest_record(f"pipelined/before_pipeliner_{direction}_0.hlo.gz")


def _largest_record(name: str) -> Path | None:
    found = shared_folder().glob(f"oracle/gpu/*/{name}")
    return max(found, key=lambda path: path.stat().st_size, default=None)


def wide_module(count: int) -> str:
    """A scheduled computation of about `count` instructions: chains of two, eight shapes, and a
    chain of all-gathers, one for about a hundred instructions. All end in the result, so that
    nearly half of the instructions are ready at once.
    """
    lines: list[str] = []
    results: list[tuple[str, str]] = []
    gathered = "x"
    while len(lines) < count - 2:
        number, size = len(results), len(results) % 8 + 1
        if number % 50:
            lines += [
                f"  b{number} = f32[{size},64] broadcast({gathered}), dimensions={{1}}",
                f"  n{number} = f32[{size},64] negate(b{number})",
            ]
            results.append((f"n{number}", f"f32[{size},64]"))
            continue
        lines += [
            f"  s{number} = (f32[64], f32[512]) all-gather-start({gathered}), "
            "replica_groups=[1,8]<=[8], dimensions={0}",
            f"  d{number} = f32[512] all-gather-done(s{number})",
            f"  c{number} = f32[64] slice(d{number}), slice={{[0:64]}}",
        ]
        results.append((f"d{number}", "f32[512]"))
        gathered = f"c{number}"
    names, shapes = (", ".join(column) for column in zip(*results, strict=True))
    return "\n".join(
        [
            "HloModule wide, is_scheduled=true, num_partitions=8",
            "",
            "ENTRY main {",
            "  x = f32[64] parameter(0)",
            *lines,
            f"  ROOT result = ({shapes}) tuple({names})",
            "}",
            "",
        ]
    )


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
