"""Stages of a compilation, and which of XLA's dumps shows each."""

from __future__ import annotations

import re
from pathlib import Path

STAGES = {
    "before_optimizations": r"before_optimizations",
    "before_spmd_partitioning": r".*\.before_spmd-partitioning",
    "after_spmd_partitioning": r".*\.after_(spmd-partitioning|dce\.before_pipeline-end)\b.*",
    "before_copy_insertion": r"",  # the dump before the next one
    "inside_copy_insertion": r"copy-insertion\.after_adding_copies_to_resolve_interference",
    "after_copy_insertion": r".*\.after_copy-insertion\..*",
    "after_scheduling": r"HLO_passes_after_scheduling\.after_pipeline-start\..*",
    "after_optimizations": r"cpu_after_optimizations",
}
"""A pattern for what follows the number of the pass, in the order of the pipeline.

XLA dumps the module before a pass that changes it, after the previous one that did.
"""


def find_stages(folder: Path, suffix: str = ".txt") -> dict[str, Path]:
    """The dumps of the main module by stage; `.hlo.pb` for protos. Absent stages are left out."""
    passes: list[tuple[str, Path]] = []
    found: dict[str, Path] = {}
    for path in sorted(folder.glob(f"module_0000.*_step.*{suffix}")):
        name = path.name.removesuffix(suffix).split(".", 2)[2]
        name, is_pass = re.subn(r"^\d{4}\.", "", name)
        if is_pass:
            passes.append((name, path))
        for stage, pattern in STAGES.items():
            if pattern and re.fullmatch(pattern, name):
                found.setdefault(stage, path)
    names = [name for name, _ in passes]
    first = next(i for i, name in enumerate(names) if name.startswith("copy-insertion."))
    found["before_copy_insertion"] = passes[first - 1][1]
    return {stage: found[stage] for stage in STAGES if stage in found}
