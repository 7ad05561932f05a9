"""Folders of dumps as a terminal page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted, printable
from hloopt.dumps.findings import COMMAND, finding_lines, host_name
from hloopt.dumps.folder import Compilation
from hloopt.dumps.names import HLO
from hloopt.dumps.retraces import Trace
from hloopt.dumps.summary import ModuleRow, Summary
from hloopt.reports.console.table import ReportTable
from hloopt.reports.console.units import (
    human_bytes,
    human_count,
    human_seconds,
    middle,
    more_text,
    page_width,
    tail,
)

if TYPE_CHECKING:
    from rich.console import Console


HEADS = (
    *("module", "run", "id", "hosts", "stages", "instructions", "peak", "collectives"),
    *("exposed", "flops", "text"),
)
"""The columns of the table of modules: `module_cells`."""
NAMES = frozenset(("module", "run"))
"""The columns that are no figures."""


def render_summary(summary: Summary, console: Console, *, top: int) -> None:
    """Print what is wrong first, then modules and traces: at most `top` of each."""
    from rich.text import Text

    width = page_width(console)
    console.print(Text(head_text(summary), "bold" if summary.has_findings else ""), width=width)
    findings = list(finding_lines(summary))
    for lines in findings[:top]:
        console.print()
        _print_finding(lines, console, width)
    if len(findings) > top:
        console.print(more_text(len(findings) - top, width), style="dim", width=width)
    _print_modules(summary, console, width, top)
    _print_retraces(summary.retraces, console, width, top)
    if summary.problems:
        _print_problems(summary, console, width, top)


def head_text(summary: Summary) -> str:
    """How much there is, and whether hosts agree."""
    folders, hosts = summary.folders, summary.hosts
    kinds = folders.kinds()
    hlo = sum(kinds[kind] for kind in HLO)
    size = human_bytes(sum(file.size for file in folders.files))
    runs = len(summary.run_names)
    parts = (
        f"{counted(len(folders.compilations), 'compilation')} on "
        f"{counted(len(summary.host_names), 'host')}" + (f" in {runs:,} runs" if runs > 1 else ""),
        f"{counted(len(folders.files), 'file')}, {hlo:,} of HLO, {size}",
        f"hosts agree in {counted(hosts.compared, 'module')}"
        if hosts.compared and not summary.has_findings
        else "",
    )
    return "; ".join(filter(None, parts))


def _print_finding(lines: Sequence[str], console: Console, width: int) -> None:
    """A finding: what it is, and below, indented, what there is to it."""
    from rich.padding import Padding
    from rich.text import Text

    title, *rest = lines
    kind, _, what = title.partition(": ")
    console.print(Text.assemble((f"{kind}: ", "bold red"), printable(what)), width=width)
    for line in rest:
        text = Text(printable(line))
        if line.startswith(COMMAND):  # to be copied: in one line, however long
            console.print(Text("  ") + text, soft_wrap=True)
        else:
            console.print(Padding(text, (0, 0, 0, 2)), width=width)


# -- tables ---------------------------------------------------------------------------------------


def _print_modules(summary: Summary, console: Console, width: int, top: int) -> None:
    rows = summary.rows
    if not rows:
        return
    console.print()
    table = ReportTable(f"Modules: {len(rows):,}", gap=2)
    has_hosts, has_runs = len(summary.host_names) > 1, len(summary.run_names) > 1
    table.add_column("module", style="bold", cut=middle)
    table.add_column("run", cut=tail, shown=has_runs)
    table.add_column("id", justify="right", stays=True)
    table.add_column("hosts", justify="right", stays=has_hosts, shown=has_hosts)
    table.add_column("stages", justify="right", stays=True)
    table.add_column("instructions", justify="right", stays=True)
    table.add_column("peak", justify="right", stays=True)
    table.add_column("collectives", justify="right", stays=True)
    has_times = any(row.after and row.after.exposed is not None for row in rows)
    table.add_column("exposed", justify="right", stays=True, shown=has_times)
    table.add_column("flops", justify="right")
    table.add_column("text", justify="right")
    for row in rows[:top]:
        table.add_row(*module_cells(row))
    console.print(table, width=width)
    if len(rows) > top:
        console.print(more_text(len(rows) - top, width), style="dim", width=width)


def module_cells(row: ModuleRow) -> Iterator[str]:
    """A row of the table of modules; `-` for a figure that the module does not tell."""
    one, before, after = row.one, row.before, row.after
    yield one.name
    yield one.run
    yield str(one.id)
    yield str(len(row.compilations))
    yield str(len(one.stages))
    counts = [f"{facts.instructions:,}" if facts else "?" for facts in (before, after)]
    yield " → ".join(counts) if one.is_finished and len(one.stages) > 1 else counts[0]
    yield "-" if after is None or after.peak is None else human_bytes(after.peak)
    yield collectives_text(row)
    yield "-" if after is None or after.exposed is None else human_seconds(after.exposed)
    yield "-" if after is None or after.flops is None else human_count(after.flops)
    yield human_bytes(row.text_bytes)


def collectives_text(row: ModuleRow) -> str:
    """`12, 3.5 MiB`: operations and payload at the last stage."""
    kinds = row.after and row.after.collectives
    if not kinds:
        return "-"
    count = sum(number for number, _ in kinds.values())
    return f"{count:,}, {human_bytes(sum(payload for _, payload in kinds.values()))}"


def _print_retraces(traces: Sequence[Trace], console: Console, width: int, top: int) -> None:
    if not traces:
        return
    console.print()
    table = ReportTable(f"Compiled again: {len(traces):,}", gap=2)
    table.add_column("module", style="bold", cut=middle)
    table.add_column("host", cut=tail, shown=any(trace.compilation.host for trace in traces))
    table.add_column("id", justify="right", stays=True)
    table.add_column("like", justify="right", stays=True)
    table.add_column("differs in", wraps=True)
    for trace in traces[:top]:
        one = trace.compilation
        table.add_row(one.name, one.host, str(one.id), str(trace.before.id), trace_text(trace))
    console.print(table, width=width)
    if len(traces) > top:
        console.print(more_text(len(traces) - top, width), style="dim", width=width)


_MOST_CHANGES = 3


def trace_text(trace: Trace) -> str:
    """Why a program was compiled again, as far as the modules tell."""
    if trace.unknown:
        return f"not known: {trace.unknown}"
    if not trace.changes:
        if trace.is_same:
            return "nothing: the same module again"
        return "its body: the signature is the same"
    parts = [
        f"{change.part}: {change.before or 'none'} → {change.after or 'none'}"
        for change in islice(trace.changes, _MOST_CHANGES)
    ]
    more = len(trace.changes) - _MOST_CHANGES
    return "; ".join(parts) + (f"; and {more:,} more" if more > 0 else "")


def _print_problems(summary: Summary, console: Console, width: int, top: int) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(f"Not read: {counted(len(summary.problems), 'file')}", "bold yellow"))
    for path, problem in islice(summary.problems.items(), top):
        name = "" if path in problem.message else f"{path}: "
        line = "" if problem.line is None else f"line {problem.line}: "
        console.print(Text(printable(f"  {name}{line}{problem.message}")), width=width)
    if len(summary.problems) > top:
        console.print(more_text(len(summary.problems) - top, width), style="dim", width=width)


def compilation_title(compilation: Compilation) -> str:
    """`module 14, jit_step, on process-3`."""
    host = f", on {host_name(compilation.host)}" if compilation.host else ""
    run = f", of {compilation.run}" if compilation.run else ""
    return f"{compilation.name}, module {compilation.id}{host}{run}"
