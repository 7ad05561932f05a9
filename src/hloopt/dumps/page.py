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
from hloopt.dumps.terminal import collectives_text, trace_text
from hloopt.files import is_remote
from hloopt.reports.console.units import human_bytes, human_count, human_seconds
from hloopt.reports.html.page import as_html, facts_list, html_page, notes_list

_HEADS = (
    *(
        "module",
        "run",
        "id",
        "hosts",
        "stages",
        "instructions",
        "peak",
        "collectives",
        "exposed",
        "flops",
    ),
    "text",
)
_LEFT = frozenset(("module", "run"))


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
    body = "".join(
        _row((_link(f"#m{number}", row.one.name), *_cells(row))) for number, row in enumerate(rows)
    )
    return _table("Modules", _HEADS, body)


def _cells(row: ModuleRow) -> Iterator[str]:
    one, before, after = row.one, row.before, row.after
    yield as_html(one.run)
    yield str(one.id)
    yield str(len(row.compilations))
    yield str(len(one.stages))
    counts = [f"{facts.instructions:,}" if facts else "?" for facts in (before, after)]
    yield " → ".join(counts) if one.is_finished and len(one.stages) > 1 else counts[0]
    yield "-" if after is None or after.peak is None else human_bytes(after.peak)
    yield as_html(collectives_text(row))
    yield "-" if after is None or after.exposed is None else human_seconds(after.exposed)
    yield "-" if after is None or after.flops is None else human_count(after.flops)
    yield human_bytes(row.text_bytes)


def _table(label: str, heads: Sequence[str], body: str) -> str:
    cells = "".join(
        f'<th scope="col"{"" if head in _LEFT else _NUMBER}>{head}</th>' for head in heads
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table><thead><tr>'
        f"{cells}</tr></thead><tbody>{body}</tbody></table></div>\n"
    )


_NUMBER = ' class="number"'


def _row(cells: Sequence[str]) -> str:
    """Cells that are HTML already, as the heads above them."""
    return (
        "<tr>"
        + "".join(
            f"<td{'' if head in _LEFT else _NUMBER}>{cell}</td>"
            for head, cell in zip(_HEADS, cells, strict=True)
        )
        + "</tr>\n"
    )


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
        f"<li>{_link(_relative(one.hlo(stage).path, folder), stage.label)}</li>\n"
        for stage in one.stages
    )
    links = [_link(_relative(path, folder), f"page of {what}") for what, path in pages.items()]
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
        _link(_relative(file.path, folder), f"XLA's {file.kind.value}")
        for file in one.beside
        if file.kind in (FileKind.BUFFERS, FileKind.MEMORY) and file.path.endswith(".txt")
    ]


def _relative(path: str, folder: str) -> str:
    from urllib.parse import quote

    if is_remote(path):
        return path
    return quote(Path(os.path.relpath(os.path.abspath(path), folder)).as_posix())


def _link(target: str, text: str) -> str:
    return f'<a href="{as_html(target)}">{as_html(text)}</a>'
