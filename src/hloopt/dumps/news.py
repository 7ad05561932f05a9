"""Changes of a folder of dumps while it is watched, in lines."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.diagnostics import counted, printable
from hloopt.dumps.facts import Facts
from hloopt.dumps.findings import NO_MORE, finding_lines
from hloopt.dumps.summary import ModuleRow, Summary
from hloopt.dumps.terminal import collectives_text, compilation_title, trace_text
from hloopt.reports.console.units import human_bytes

_OPEN = "never finished"
"""The kind of finding that is none while hosts compile; nor is a sequence that ends early."""


class News:
    """Remembers what was told of summaries of one folder."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def of(self, summary: Summary) -> Iterator[str]:
        """Lines on what is new: finished compilations, compilations once more, hosts that differ.

        O(modules).
        """
        for line in (*self._modules(summary), *self._retraces(summary), *self._findings(summary)):
            if line not in self._told:
                self._told.add(line)
                yield printable(line)

    def _modules(self, summary: Summary) -> Iterator[str]:
        for row in reversed(summary.rows):
            if row.after is None:  # it is still being written
                continue
            for compilation in row.compilations:
                if compilation.is_finished:
                    yield f"{compilation_title(compilation)}: {_figures(row, row.after)}"

    def _retraces(self, summary: Summary) -> Iterator[str]:
        for trace in summary.retraces:
            title = compilation_title(trace.compilation)
            yield f"compiled again: {title}: differs in {trace_text(trace)}"

    def _findings(self, summary: Summary) -> Iterator[str]:
        for title, *rest in finding_lines(summary):
            is_open = title.startswith(_OPEN) or any(line.endswith(f": {NO_MORE}") for line in rest)
            if not is_open:
                yield " | ".join((title, *rest))


def _figures(row: ModuleRow, facts: Facts) -> str:
    peak = "" if facts.peak is None else f", peak {human_bytes(facts.peak)}"
    collectives = collectives_text(row)
    waits = "" if collectives == "-" else f", collectives {collectives}"
    return f"{counted(facts.instructions, 'instruction')}{peak}{waits}"
