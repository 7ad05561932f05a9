"""Folders of dumps as a page of their own: findings, modules, and each module with its stages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hloopt.diagnostics import counted
from hloopt.dumps.findings import finding_lines, host_list
from hloopt.dumps.folder import Compilation
from hloopt.dumps.names import FileKind
from hloopt.dumps.retraces import Trace
from hloopt.dumps.summary import ModuleRow, Summary
from hloopt.dumps.terminal import HEADS, NAMES, module_cells, trace_text
from hloopt.files import is_remote
from hloopt.reports.console.units import human_bytes
from hloopt.reports.html.page import (
    Column,
    Link,
    as_html,
    data_table,
    facts_list,
    html_page,
    notes_list,
)

_COLUMNS = [Column(head, "" if head in NAMES else "number") for head in HEADS]


def dumps_page(summary: Summary, place: str, pages: Mapping[int, Mapping[str, str]]) -> str:
    """A whole HTML document, to be written to `place`: links to dumps are relative to it.

    `pages` has, by the number of a row, further pages on a module with what they are of. O(stages).
    """
    folder = os.path.dirname(os.path.abspath(place))
    body = "".join(
        (
            facts_list(_facts(summary)),
            *(_finding(lines) for lines in finding_lines(summary)),
            "<h2>Modules</h2>\n",
            _modules(summary.rows),
            _retraces(summary.retraces),
            _problems(summary),
            *(
                _module(number, row, folder, pages.get(number, {}))
                for number, row in enumerate(summary.rows)
            ),
            notes_list(
                (
                    "Instructions are those before and after optimizations; peak, collectives and "
                    "flops are of the optimized module, of one device and one run. A - is a figure "
                    "that the module does not tell.",
                )
            ),
        )
    )
    return html_page(f"Dumps in {', '.join(summary.roots)}", ("dumps",), body, None)


def _facts(summary: Summary) -> Iterator[tuple[str, str]]:
    folders = summary.folders
    yield "compilations", f"{len(folders.compilations):,}"
    yield "hosts", f"{len(summary.host_names):,}"
    yield "runs", f"{len(summary.run_names):,}"
    yield "files", f"{len(folders.files):,}"
    yield "size", human_bytes(sum(file.size for file in folders.files))
    if summary.hosts.compared:
        yield "compared on several hosts", counted(summary.hosts.compared, "module")


def _finding(lines: Sequence[str]) -> str:
    title, *rest = lines
    kind, _, what = title.partition(": ")
    text = "\n".join(map(as_html, rest))
    return (
        f'<section class="finding"><h2><span class="exhausted">{as_html(kind)}</span>: '
        f"{as_html(what)}</h2>\n<pre>{text}</pre></section>\n"
    )


# -- tables ---------------------------------------------------------------------------------------


def _modules(rows: Sequence[ModuleRow]) -> str:
    cells: list[list[str | Link]] = []
    for number, row in enumerate(rows):
        name, *rest = module_cells(row)
        cells.append([Link(f"#m{number}", name), *rest])
    return data_table("Modules", _COLUMNS, cells)


def _retraces(traces: Sequence[Trace]) -> str:
    if not traces:
        return ""
    items = "".join(
        f"<li><b>{as_html(t.compilation.name)}</b>, module {t.compilation.id}, beside module "
        f"{t.before.id}: {as_html(trace_text(t))}</li>\n"
        for t in traces
    )
    return f"<h2>Compiled again: {len(traces):,}</h2>\n<ul>{items}</ul>\n"


def _problems(summary: Summary) -> str:
    if not summary.problems:
        return ""
    items = "".join(
        f"<li>{as_html(path)}: {as_html(problem.message)}</li>\n"
        for path, problem in summary.problems.items()
    )
    title = counted(len(summary.problems), "file")
    return f'<h2 class="doubt">Not read: {title}</h2>\n<ul>{items}</ul>\n'


# -- one module -----------------------------------------------------------------------------------


def _module(number: int, row: ModuleRow, folder: str, pages: Mapping[str, str]) -> str:
    """A section with its stages; links to the dumps of its first host, and to further pages."""
    one = row.one
    stages = "".join(
        f"<li>{Link(_relative(one.hlo(stage).path, folder), stage.label).html}</li>\n"
        for stage in one.stages
    )
    links = [Link(_relative(path, folder), f"page of {what}").html for what, path in pages.items()]
    links += _reports(one, folder)
    return (
        f'<details id="m{number}"><summary><b>{as_html(one.name)}</b>, module {one.id}'
        f"{as_html(_where(row))}</summary>\n"
        + (f"<p>{' · '.join(links)}</p>\n" if links else "")
        + f"<ol>{stages}</ol></details>\n"
    )


def _where(row: ModuleRow) -> str:
    named = [host for host in row.hosts if host]
    run = f", of {row.one.run}" if row.one.run else ""
    return (f", on {host_list(named)}" if named else "") + run


def _reports(one: Compilation, folder: str) -> list[str]:
    """Links to what XLA itself reported on the optimized module."""
    return [
        Link(_relative(file.path, folder), f"XLA's {file.kind.value}").html
        for file in one.beside
        if file.kind in (FileKind.BUFFERS, FileKind.MEMORY) and file.path.endswith(".txt")
    ]


def _relative(path: str, folder: str) -> str:
    from urllib.parse import quote

    if is_remote(path):
        return path
    return quote(Path(os.path.relpath(os.path.abspath(path), folder)).as_posix())
