"""Shares of lines: how the runs of an instruction divide among the lines that call its
computation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hloopt.analysis.source_lines.lines import SourceLines
from hloopt.analysis.source_lines.model import SourceLine
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction

Calls = Mapping[Computation, Mapping[Instruction, int]]
"""By computation what calls it, and how often each time it runs itself; callers come first."""


class RunsByLine:
    """The lines of instructions, with the runs at each.

    A function of a library that is lowered once and called from several lines costs something at
    each of them. O(calls times the lines they are at).
    """

    def __init__(self, lines: SourceLines, runs: Mapping[Computation, int], calls: Calls) -> None:
        self._lines = lines
        self._runs = runs
        self._callers: dict[Computation, dict[SourceLine, int]] = {}
        for computation, callers in calls.items():
            found: dict[SourceLine, int] = {}
            for caller, times in callers.items():
                for line, count in self.of(caller):
                    found[line] = found.get(line, 0) + count * times
            if found:
                self._callers[computation] = found

    def of(self, instruction: Instruction) -> Iterator[tuple[SourceLine, int]]:
        """The lines of an instruction, some more than once, with runs that add up to its own."""
        line = self._lines.of(instruction)
        callers = self._callers.get(instruction.parent)
        if not line.is_callers or callers is None:
            yield line, self._runs.get(instruction.parent, 0)
            return
        for caller, runs in callers.items():
            yield self._lines.called_from(instruction, caller), runs
