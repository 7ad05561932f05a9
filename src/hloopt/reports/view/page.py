"""A module as one page: its parts, a graph, the text, and reports as pages of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING

from hloopt.ir.module import Module
from hloopt.reports.html.page import as_html, as_json, html_page
from hloopt.reports.look import WORK
from hloopt.reports.view.changes import change_lines
from hloopt.reports.view.columns import Extras, module_columns, module_lines

if TYPE_CHECKING:
    from hloopt.reports.diff.findings import ModuleDiff

_SCRIPTS = (
    *("canvas", "unpack"),
    *("view_model", "view_rows", "view_tree", "view_text", "view_details"),
    *("view_groups", "view_graph", "view_parts", "view_pictures"),
    *("view_changes", "view_reports", "view_address", "view"),
)
_VIEWS = {
    "graph": "Graph",
    "text": "Text",
    "schedule": "Timeline",
    "memory": "Memory",
    "cost": "Cost",
    "calls": "Calls",
    "changes": "Changes",
}


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports that a page has beside the module itself, as pages of their own."""

    pages: Mapping[str, str] = field(default_factory=dict)
    """The page of each report: `schedule`, `memory`, `cost`."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """The reason why there is no report, by view."""
    facts: Sequence[tuple[str, str]] = ()
    """Names and figures of the module as a whole."""
    notices: Sequence[str] = ()
    diff: ModuleDiff | None = None
    """The difference to a module before."""


def view_page(module: Module, extras: Extras, reports: Reports) -> str:
    """A whole HTML document. O(length of the module's text), beside the reports."""
    blocks = {
        "columnsData": as_json(module_columns(module, extras)),
        "linesData": "\n".join(module_lines(module)),
        "layoutLibrary": _layout_library(),
        **{f"{name}Page": page for name, page in reports.pages.items()},
    }
    views = dict(_VIEWS)
    if reports.diff is None:
        del views["changes"]
    else:
        blocks["changesData"] = as_json(list(change_lines(reports.diff)))
    data = {
        "facts": list(reports.facts),
        "missing": dict(reports.missing),
        "kinds": [kind.value for kind in WORK],
        "tab": "graph" if reports.diff is None else "changes",
    }
    return html_page(
        module.name,
        _SCRIPTS,
        _body(views, reports.missing),
        data,
        notices=reports.notices,
        blocks=blocks,
        style=_kind_styles(),
    )


def _layout_library() -> str:
    """dagre with its licence in front."""
    vendor = files("hloopt.reports.html").joinpath("assets", "vendor")
    names = ("dagre.min.js.LEGAL.txt", "dagre.min.js")
    return "".join(vendor.joinpath(name).read_text(encoding="utf-8") for name in names)


def _body(views: Mapping[str, str], missing: Mapping[str, str]) -> str:
    tabs = "".join(
        f'<button type="button" role="tab" data-tab="{name}" aria-controls="{name}" '
        f'aria-selected="false">{title}</button>'
        for name, title in views.items()
    )
    sections = "".join(
        f'<section id="{name}" role="tabpanel" aria-label="{title}" hidden>'
        f"{_inside(name, missing)}</section>\n"
        for name, title in views.items()
    )
    return f"""<noscript><p class="doubt">This page needs JavaScript: allow it, or print the module
with hloopt skeleton and hloopt show.</p></noscript>
<div id="top"><div id="tabs" role="tablist" aria-label="views">{tabs}</div>
<input id="find" type="search" placeholder="find: name, op_name, opcode, shape, source, computation"
  aria-label="find"></div>
<div id="areas">
<nav id="left"><div id="treeBar"><label>by <select id="treeBy">
<option value="computation">computation</option><option value="scope">scope</option>
</select></label>
<span id="treeHead" role="status"></span></div>
<div id="tree" class="list" role="listbox" aria-label="parts of the module"></div></nav>
<main>
{sections}</main>
<aside id="details" aria-label="what is selected"><p class="hint">The page is being unpacked. Where
this text stays, the browser is too old: it takes Chromium 92, Firefox 113, Safari 16.4 or a newer
one.</p></aside></div>
"""


_INSIDE = {
    "graph": '<p class="note"><span id="path"></span> '
    '<span id="graphNote" role="status"></span></p>'
    '<ul class="legend" id="graphLegend" aria-label="colours"></ul>'
    '<svg id="graphPicture" tabindex="0" role="group" aria-label="graph"></svg>',
    "calls": '<p class="note" id="callsNote" role="status"></p>'
    '<svg id="callsPicture" tabindex="0" role="group" aria-label="call graph"></svg>',
    "text": '<p class="note" id="textHead"></p>'
    '<div id="textLines" class="list" role="listbox" aria-label="text"></div>',
    "changes": '<p class="note" id="changesNote"></p>'
    '<div id="changeLines" class="list" role="listbox" aria-label="changes"></div>',
}


def _inside(name: str, missing: Mapping[str, str]) -> str:
    if name in missing:
        return f'<p class="doubt">{as_html(missing[name])}</p>'
    return _INSIDE.get(name, "")


def _kind_styles() -> str:
    """A colour for each kind of instruction."""
    return "".join(
        f".kind-{kind.value.replace(' ', '-')} {{ --fill: var(--{look.fill}); "
        f"--on-fill: var(--on-{look.fill}) }}\n"
        for kind, look in WORK.items()
    )
