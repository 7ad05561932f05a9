"""Folders of dumps as a terminal page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted, printable
from hloopt.dumps.folder import Compilation
from hloopt.dumps.hosts import Divergence, Leftover, Mismatch
from hloopt.dumps.names import HLO
from hloopt.dumps.retraces import Trace
from hloopt.dumps.summary import ModuleRow, Summary
from hloopt.reports.console.table import ReportTable
from hloopt.reports.console.units import (
    human_bytes,
    human_count,
    middle,
    more_text,
    page_width,
    some,
    tail,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def render_summary(summary: Summary, console: Console, *, top: int) -> None:
    """Print what is wrong first, then modules and traces: at most `top` of each."""
    width = page_width(console)
    console.print(_head(summary), width=width)
    for lines in (
        *map(divergence_lines, summary.hosts.divergences[:top]),
        *map(mismatch_lines, summary.hosts.mismatches[:top]),
        *map(leftover_lines, summary.hosts.leftovers[:top]),
    ):
        console.print()
        _print_finding(lines, console, width)
    _print_modules(summary, console, width, top)
    _print_retraces(summary.retraces, console, width, top)
    if summary.problems:
        _print_problems(summary, console, width, top)


def _head(summary: Summary) -> Text:
    from rich.text import Text

    folders = summary.folders
    kinds = folders.kinds()
    hlo = sum(kinds[kind] for kind in HLO)
    compilations = counted(len(folders.compilations), "compilation")
    size = human_bytes(sum(file.size for file in folders.files))
    text = Text.assemble(
        (compilations, "bold"),
        f" on {counted(len(summary.host_names), 'host')}",
        f" in {counted(len(summary.run_names), 'run')}" if len(summary.run_names) > 1 else "",
        f"; {counted(len(folders.files), 'file')}, {hlo:,} of HLO, {size}",
    )
    hosts = summary.hosts
    if hosts.compared and not summary.has_findings:
        text.append(f"; hosts agree in {counted(hosts.compared, 'module')}")
    return text


def _print_finding(lines: Sequence[str], console: Console, width: int) -> None:
    """A finding: what it is, and below, indented, what there is to it."""
    from rich.padding import Padding
    from rich.text import Text

    title, *rest = lines
    kind, _, what = title.partition(": ")
    console.print(Text.assemble((f"{kind}: ", "bold red"), printable(what)), width=width)
    for line in rest:
        text = Text(printable(line))
        if line.startswith(_COMMAND):  # to be copied: in one line, however long
            console.print(Text("  ") + text, soft_wrap=True)
        else:
            console.print(Padding(text, (0, 0, 0, 2)), width=width)


_COMMAND = "hloopt "


def divergence_lines(each: Divergence) -> list[str]:
    """A divergence in lines: which module, where, which hosts, what differs, what to type."""
    lines = [f"hosts differ: {_module(each.program, each.occurrence, each.run, each.group)}"]
    if each.is_input:
        lines.append(f"from {each.stage} on: XLA was given other programs")
    else:
        lines.append(f"from {each.maker} on ({each.stage})")
    for hosts, path in zip(each.hosts, each.files, strict=True):
        nothing = "" if path else ": no dump, so the pass changed nothing there"
        lines.append(f"{host_list(hosts)}{nothing}")
    if each.first is not None:
        first = each.first
        more = f", the first of {first.total:,}" if first.total > 1 else ""
        lines.append(f"first difference{more}: {first.where}: {', '.join(first.what)}")
        lines += [f"{sign} {text}" for sign, text in (("-", first.before), ("+", first.after))
                  if text]  # fmt: skip
    paths = [path for path in each.files if path]
    if len(paths) > 1:
        lines.append(f"{_COMMAND}diff {quote(paths[0])} {quote(paths[1])}")
    return lines


def mismatch_lines(each: Mismatch) -> list[str]:
    """A mismatch of sequences in lines."""
    if each.program:
        name = _module(each.program, each.occurrence, each.run, each.group)
        title = f"collectives in another order: {name}, at number {each.position}"
    else:
        where = f" of {each.run}" if each.run else ""
        title = (
            f"programs in another order: hosts{where} compile other programs with collectives at "
            f"number {each.position}"
        )
    return [title, *(f"{host_list(h)}: {entry or 'no more'}" for entry, h in each.entries)]


def leftover_lines(each: Leftover) -> list[str]:
    """A compilation that never finished, in lines."""
    one = each.compilation
    at = f" on {host_name(one.host)}" if one.host else ""
    lines = [f"never finished: {one.name}{at}: the last dump is {each.last}"]
    if each.others:
        lines.append(f"finished on {host_list(each.others)}")
    return lines


def _module(program: str, occurrence: int, run: str, group: str) -> str:
    number = f" (number {occurrence} of this name)" if occurrence > 1 else ""
    where = " ".join(part for part in (run, group) if part)
    return f"{program}{number}" + (f" of {where}" if where else "")


def host_name(host: str) -> str:
    """The name of a host; a number alone says nothing."""
    return f"host {host}" if host.isdecimal() else host or "the only host"


def host_list(hosts: Sequence[str]) -> str:
    """`process-0 and process-1`, or the first three of many."""
    names = [host_name(host) for host in hosts]
    return f"{some(names)} ({counted(len(names), 'host')})" if len(names) > 3 else some(names)


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
    table.add_column("flops", justify="right")
    table.add_column("text", justify="right")
    for row in rows[:top]:
        table.add_row(*_module_cells(row))
    console.print(table, width=width)
    if len(rows) > top:
        console.print(more_text(len(rows) - top, width), style="dim", width=width)


def _module_cells(row: ModuleRow) -> Iterator[str]:
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
