"""Changes of a folder of dumps while it is watched, in lines."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.diagnostics import counted, printable
from hloopt.dumps.facts import Facts
from hloopt.dumps.findings import divergence_lines, mismatch_lines
from hloopt.dumps.summary import ModuleRow, Summary
from hloopt.dumps.terminal import collectives_text, compilation_title, trace_text
from hloopt.reports.console.units import human_bytes


class News:
    """Remembers what was told of summaries of one folder."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def of(self, summary: Summary) -> Iterator[str]:
        """Lines on what is new: finished compilations, compilations once more, hosts that differ.

        O(modules).
        """
        for line in (
            *self._modules(summary),
            *self._retraces(summary),
            *self._findings(summary),
            *self._problems(summary),
        ):
            if line not in self._told:
                self._told.add(line)
                yield printable(line)

    def _modules(self, summary: Summary) -> Iterator[str]:
        for row in reversed(summary.rows):
            for compilation in row.compilations:
                if compilation.is_finished and row.after is not None:  # else it is being written
                    is_alike = row.variants == 1 or compilation is row.one
                    figures = _figures(row, row.after) if is_alike else "another module"
                    yield f"{compilation_title(compilation)}: {figures}"

    def _retraces(self, summary: Summary) -> Iterator[str]:
        for trace in summary.retraces:
            title = compilation_title(trace.compilation)
            yield f"compiled again: {title}: differs in {trace_text(trace)}"

    def _findings(self, summary: Summary) -> Iterator[str]:
        hosts = summary.hosts
        whole = [m for m in hosts.mismatches if m.program or all(entry for entry, _ in m.entries)]
        for lines in (*map(divergence_lines, hosts.divergences), *map(mismatch_lines, whole)):
            yield " | ".join(lines)

    def _problems(self, summary: Summary) -> Iterator[str]:
        for path, problem in summary.problems.items():
            if not problem.is_incomplete:
                name = "" if path in problem.message else f"{path}: "
                yield f"not read: {name}{problem.message}"


def _figures(row: ModuleRow, facts: Facts) -> str:
    peak = "" if facts.peak is None else f", peak {human_bytes(facts.peak)}"
    collectives = collectives_text(row)
    waits = "" if collectives == "-" else f", collectives {collectives}"
    return f"{counted(facts.instructions, 'instruction')}{peak}{waits}"
