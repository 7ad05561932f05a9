"""The lines of the program at which the instructions of a module cost something."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import Runs, count_calls
from hloopt.analysis.source_lines import RunsByLine, SourceLine, SourceLines
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.reports.sources import NO_SOURCE


class CostSources:
    """Looks lines up when it is first asked: near-linear in the module."""

    def __init__(
        self, module: Module, costs: CostAnalysis, runs: Mapping[Computation, Runs]
    ) -> None:
        self._module = module
        self._costs = costs
        self._runs = runs

    @cached_property
    def _lines(self) -> RunsByLine:
        return RunsByLine(
            SourceLines(self._module),
            {computation: runs.times for computation, runs in self._runs.items()},
            count_calls(self._module, self._costs),
        )

    def of(self, instruction: Instruction) -> dict[SourceLine, int]:
        """The lines of an instruction, several where several call its function, and its runs."""
        found: dict[SourceLine, int] = {}
        for line, runs in self._lines.of(instruction):
            if runs:
                found[line] = found.get(line, 0) + runs
        return found

    def labels(self, instruction: Instruction) -> list[tuple[str, int]]:
        """The same as a table says it, each label once."""
        runs: dict[str, int] = {}
        for line, count in self.of(instruction).items():
            label = line.label or NO_SOURCE
            runs[label] = runs.get(label, 0) + count
        return list(runs.items())
