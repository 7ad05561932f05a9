"""What XLA wrote while it compiled a program, and what JAX says of the program."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hloopt.interpreter.values import Value

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("run_program.py")

STAGES = {
    "before_optimizations": "before_optimizations",
    "before_partitioning": "before_spmd-partitioning",
    "after_partitioning": "after_spmd-partitioning",
    "before_copies": "",
    "inside_copies": "copy-insertion.after_adding_copies",
    "after_copies": "after_copy-insertion",
    "after_scheduling": "HLO_passes_after_scheduling.after_pipeline-start",
    "after_optimizations": "cpu_after_optimizations",
}
"""Stages of a compilation, and what the name of the first dump at that stage contains.

XLA dumps a module when a pass changed it: a name says between which passes it was so.
`before_copies` is the dump before `inside_copies`. A program on one device is not partitioned.
"""

_DUMP = re.compile(r"module_0000\.\w+\.(before_optimizations|\d{4}\..*|cpu_after_optimizations)")


@dataclass(frozen=True)
class Dumps:
    """The dumps of one program, its arrays and what JAX says that it takes."""

    program: str
    folder: Path
    """What run_program.py wrote, and XLA in `xla/` in it."""

    def __str__(self) -> str:
        return self.program

    @cached_property
    def passes(self) -> dict[str, Path]:
        """Each dump of the main module as text, in the order of compilation."""
        found = {
            match[1]: path
            for path in sorted((self.folder / "xla").glob("*.txt"))
            if (match := _DUMP.fullmatch(path.stem))
        }
        first, last = "before_optimizations", "cpu_after_optimizations"
        return {first: found.pop(first)} | {
            **{name: path for name, path in found.items() if name != last},
            last: found[last],
        }

    @cached_property
    def stages(self) -> dict[str, Path]:
        """The dumps of STAGES, but for stages that a program on one device does not have."""
        names = list(self.passes)
        found = {}
        for stage, part in STAGES.items():
            if part and (name := next((name for name in names if part in name), None)):
                found[stage] = name
        found["before_copies"] = names[names.index(found["inside_copies"]) - 1]
        return {stage: self.passes[found[stage]] for stage in STAGES if stage in found}

    def is_partitioned(self, stage: str) -> bool:
        """Whether the module of a stage is that of one device, with what it sends to others."""
        return list(STAGES).index(stage) > list(STAGES).index("before_partitioning") or (
            "after_partitioning" not in self.stages
        )

    @cached_property
    def memory(self) -> dict[str, float]:
        """The numbers of `compiled.memory_analysis()`."""
        return dict(self._analyses["memory_analysis"])

    @cached_property
    def cost(self) -> dict[str, float]:
        """The numbers of `compiled.cost_analysis()`."""
        return dict(self._analyses["cost_analysis"])

    def arrays(self, name: str) -> list[list[Value]]:
        """The leaves of `inputs` or `outputs` by device; those of `whole_inputs` as of one."""
        with np.load(self.folder / f"{name}.npz") as arrays:
            by_device: dict[str, list[Value]] = {}
            for key in arrays:  # in the order in which they were written: by leaf
                by_device.setdefault(key.partition("@")[2], []).append(arrays[key])
        return list(by_device.values())

    @cached_property
    def _analyses(self) -> dict[str, dict[str, float]]:
        return dict(json.loads((self.folder / "analyses.json").read_text()))


def proto_of(text: Path) -> Path:
    """The proto that XLA wrote beside a text."""
    return text.with_name(f"{text.stem}.hlo.pb")


def make_dumps(program: str, folder: Path) -> Dumps:
    """Compile and run a program in a process of its own."""
    from make_testdata import child_environment

    flags = ("--xla_dump_hlo_as_proto", "--xla_dump_hlo_pass_re=.*")
    done = subprocess.run(
        [sys.executable, "-P", str(SCRIPT), program, str(folder)],
        env=child_environment(folder / "xla", *flags, path=[ROOT]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Dumps(program, folder)
