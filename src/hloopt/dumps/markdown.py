"""Folders of dumps in Markdown: for an issue, or the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.diagnostics import counted, printable
from hloopt.dumps.findings import finding_lines
from hloopt.dumps.summary import ModuleRow, Summary
from hloopt.dumps.terminal import HEADS, NAMES, head_text, module_cells, trace_text
from hloopt.reports.console.markdown import markdown_text

_HEADS = HEADS[: HEADS.index("exposed")]
"""The columns there is room for."""


def write_markdown(summary: Summary, *, top: int) -> str:
    """A page: what is wrong first, then at most `top` modules and traces."""
    return "\n".join((*_head(summary), *_modules(summary.rows, top), *_rest(summary, top))) + "\n"


def _head(summary: Summary) -> Iterator[str]:
    yield f"**hloopt dumps**: {markdown_text(head_text(summary))}"
    yield ""
    for title, *rest in finding_lines(summary):
        kind, _, what = title.partition(": ")
        yield f"- **{markdown_text(kind)}**: {markdown_text(what)}"
        yield from (f"  - {_code(line)}" for line in rest)
    if summary.has_findings:
        yield ""


def _code(line: str) -> str:
    """A line as code: HLO and commands as they are."""
    text = printable(line)
    fence = "``" if "`" in text else "`"
    return f"{fence} {text} {fence}" if fence == "``" else f"`{text}`"


def _modules(rows: Sequence[ModuleRow], top: int) -> Iterator[str]:
    yield f"| {' | '.join(_HEADS)} |"
    yield f"| {' | '.join('---' if head in NAMES else '---:' for head in _HEADS)} |"
    for row in rows[:top]:
        cells = list(module_cells(row))[: len(_HEADS)]
        yield f"| {' | '.join(map(markdown_text, cells))} |"
    if len(rows) > top:
        yield f"\n… and {len(rows) - top:,} more"


def _rest(summary: Summary, top: int) -> Iterator[str]:
    if summary.retraces:
        yield f"\n**Compiled again**: {len(summary.retraces):,}\n"
        for trace in summary.retraces[:top]:
            one = trace.compilation
            name = f"{one.name}, module {one.id}"
            yield f"- {markdown_text(name)}: {markdown_text(trace_text(trace))}"
    if summary.problems:
        yield f"\n**Not read**: {counted(len(summary.problems), 'file')}\n"
        for path, problem in list(summary.problems.items())[:top]:
            yield f"- {_code(path)}: {markdown_text(problem.message)}"
