"""Reports as pages of their own: one HTML file, without network or libraries."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from gzip import compress
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

from hloopt.diagnostics import printable
from hloopt.reports.console.units import middle, tail
from hloopt.reports.html.palette import palette_css


def html_page(
    title: str,
    parts: Sequence[str],
    body: str,
    data: Any,
    *,
    notices: Iterable[str] = (),
    blocks: Mapping[str, str] = MappingProxyType({}),
    style: str = "",
) -> str:
    """A document with the styles and scripts `assets/PART.css` and `.js`, those of all pages first.

    Scripts find `data` parsed in `data`, and can call `$(id)` and `showTip(event, lines)`.
    `notices` stand above all else: what keeps the figures from being what a reader takes them for.
    `blocks` are texts that scripts unpack by their names; `style` is CSS beside that of the parts.
    """
    parts = ("page", *parts)
    styles, scripts = ("".join(_texts(parts, kind)) for kind in ("css", "js"))
    banners = "".join(f'<p class="notice" role="note">{as_html(text)}</p>\n' for text in notices)
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{as_html(title)}</title>\n",
            f"<style>\n{palette_css()}{styles}{style}</style></head><body>\n",
            f"<h1>{as_html(middle(title, _LONGEST_TITLE))}</h1>\n{banners}{body}",
            '<div id="tip" role="status"></div>\n',
            f'<script type="application/json" id="data">{as_json(data)}</script>\n',
            *(
                f'<script type="text/plain" id="{name}">{_packed(text)}</script>\n'
                for name, text in blocks.items()
            ),
            f"<script>\n{scripts}</script></body></html>\n",
        )
    )


_LONGEST_TITLE = 120


def _texts(parts: Iterable[str], kind: str) -> Iterator[str]:
    for part in parts:
        asset = files(__package__).joinpath("assets", f"{part}.{kind}")
        if asset.is_file():
            yield asset.read_text(encoding="utf-8")


def _packed(text: str) -> str:
    return b64encode(compress(text.encode("utf-8"), 6, mtime=0)).decode("ascii")


# -- texts of a module ----------------------------------------------------------------------------


def as_html(text: str) -> str:
    """`text` as people see it: no markup, and an escape for what is not printable."""
    return escape(printable(text))


_CONTROL = re.compile(r"\\[bfnrtu]")


def as_json(data: Any) -> str:
    """`data` for a script, which shows its texts as they are: they hold printable characters."""
    text = _compact(data)
    if _CONTROL.search(text) or not text.isprintable():
        text = _compact(_printable_data(data))
    return text.replace("<", "\\u003c")


def _compact(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _printable_data(data: Any) -> Any:
    if isinstance(data, str):
        return printable(data)
    if isinstance(data, dict):
        return {_printable_data(key): _printable_data(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_printable_data(value) for value in data]
    return data


# -- parts of a page ------------------------------------------------------------------------------


def facts_list(facts: Iterable[tuple[str, str]]) -> str:
    """Names and figures in a row."""
    items = "".join(
        f"<div><dt>{as_html(name)}</dt><dd>{as_html(value)}</dd></div>" for name, value in facts
    )
    return f"<dl>{items}</dl>\n"


def notes_list(notes: Iterable[str]) -> str:
    """The assumptions behind figures."""
    return f'<ul class="notes">{"".join(f"<li>{as_html(note)}</li>" for note in notes)}</ul>\n'


class Column(NamedTuple):
    """A column of a table: its head, and what its cells are like."""

    name: str
    style: str = ""
    """`number`: to the right; `name`, `path`: cut where they are too long, a path at its beginning;
    `text`: in several lines, and cut in the middle where that is not enough."""


class Link(NamedTuple):
    """A cell that leads to another place."""

    target: str
    text: str

    @property
    def html(self) -> str:
        return f'<a href="{as_html(self.target)}">{as_html(self.text)}</a>'


def data_table(
    label: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str | Link]] = (),
    *,
    body: str = "rows",
) -> str:
    """A table in a box that scrolls where the window is too narrow for it.

    Cells are like the heads above them. Scripts fill the body `body` where there are no rows.
    """
    heads = "".join(
        f'<th scope="col"{_style(column)}>{as_html(column.name)}</th>' for column in columns
    )
    cells = "".join(
        f"<tr>{''.join(map(_cell, columns, row))}</tr>\n" for row in rows
    )  # of equal length
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{as_html(label)}">'
        f'<table><thead><tr>{heads}</tr></thead><tbody id="{body}">{cells}</tbody></table></div>\n'
    )


def _style(column: Column) -> str:
    return f' class="{column.style}"' if column.style else ""


def _cell(column: Column, value: str | Link) -> str:
    if isinstance(value, Link):
        return f"<td{_style(column)}>{value.html}</td>"
    shown, title = value, ""
    if column.style == "path":
        shown = tail(value, _LONGEST_PATH)
    elif column.style == "text":
        shown = middle(value, _LONGEST_TEXT)
    if column.style == "name" or shown != value:
        title = f' title="{as_html(value)}"'
    html = as_html(shown)
    if column.style == "text":  # broken between the parts of a path
        html = html.replace("/", "/<wbr>")
    return f"<td{_style(column)}{title}>{html}</td>"


_LONGEST_PATH, _LONGEST_TEXT = 36, 180


class LegendEntry(NamedTuple):
    """A colour of a picture and what it stands for."""

    fill: str
    """A name of the palette."""
    label: str
    is_hatched: bool = False


def legend_list(entries: Iterable[LegendEntry], identity: str) -> str:
    """The legend of one picture."""
    items = "".join(
        f'<li><i class="{"hatched" if entry.is_hatched else ""}" '
        f'style="background-color:var(--{entry.fill})"></i>{as_html(entry.label)}</li>'
        for entry in entries
    )
    return f'<ul class="legend" id="{identity}">{items}</ul>\n'
