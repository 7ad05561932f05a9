"""The files of a compile by what they show: `hlo`, `buffer-assignment`, `ptx` …"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hloopt.diagnostics import HloError
from hloopt.dumps.folder import Compilation, natural, scan


class Stage(NamedTuple):
    """The meaning of a stage, and the files that have it."""

    what: str
    pattern: str
    needs_code: bool = False
    """Whether it is there only when code was generated."""
    behind: str | None = None
    """The pass behind which it is: a compiler that has no file of the pattern dumps there."""

    @property
    def passes(self) -> str | None:
        """The passes around which dumps are needed, as `compiling.Settings` takes them."""
        return self.behind and f"^{self.behind}$"

    def files(self, dumps: Path) -> list[Path]:
        """Its files, kernels by number; none where the compiler wrote none."""
        found = [*dumps.glob(self.pattern)]
        if not found and self.behind:
            found = [*dumps.glob(f"*.after_{self.behind}.*.txt")]
        return sorted(found, key=lambda path: natural(path.name))


STAGES = {
    "hlo-before": Stage("HLO before the first pass", "*.before_optimizations.txt"),
    "spmd": Stage(
        "HLO behind the partitioner", "*.after_spmd_partitioner.txt", behind="spmd-partitioning"
    ),
    "hlo": Stage("HLO behind the last pass, scheduled", "*after_optimizations.txt"),
    "buffer-assignment": Stage("allocations", "*after_optimizations-buffer-assignment.txt"),
    "memory": Stage("memory by size of buffers", "*after_optimizations-memory-usage-report.txt"),
    "thunks": Stage("thunks in order", "*.thunk_sequence.txt", needs_code=True),
    "llvm-before-optimizations": Stage("LLVM IR", "*.ir-no-opt.ll", needs_code=True),
    "llvm": Stage("LLVM IR, optimized", "*.ir-with-opt.ll", needs_code=True),
    "ptx": Stage("PTX of each kernel", "*.ptx", needs_code=True),
}


def files_of(stage: str, dumps: Path) -> list[Path]:
    """The files of a stage, kernels by number. Raises HloError where the compiler wrote none."""
    found = STAGES[stage].files(dumps)
    if not found:
        there = [name for name, each in STAGES.items() if each.files(dumps)]
        raise HloError(
            f"this compile has no stage {stage}", help=f"it has {', '.join(there) or 'none'}"
        )
    return found


def compilation_in(dumps: Path) -> Compilation:
    """The program that was compiled, beside which XLA may compile small ones. Raises HloError."""
    compilations = scan([str(dumps)]).compilations
    if not compilations:
        raise HloError("XLA left no dumps of HLO: is there a flag that keeps it from that?")
    return max(compilations, key=lambda each: len(each.stages))
