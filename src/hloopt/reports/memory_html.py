"""The memory model as a page of its own: memory over time, and what lies at which address when."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from hloopt.reports.page import facts_list, html_page, notes_list
from hloopt.reports.units import human_bytes

_COLUMNS = ("size", "allocation", "offset")
_TEXTS = ("name", "computation", "opcode", "shape", "kind", "op_name", "source")


def memory_page(model: dict[str, Any]) -> str:
    """A whole HTML document of a model (see `MemoryFindings.model`). Linear in it."""
    title = f"Memory of {model['module']} on {model['backend']}"
    fit = model["fit"]
    verdict = ""
    if fit is not None:
        text = fit["message"] or (
            f"fits: {human_bytes(fit['needed'])} of {human_bytes(fit['limit'])} "
            f"({fit['limit_source']})"
        )
        verdict = f'<p class="{"fits" if fit["fits"] else "exhausted"}">{escape(text)}</p>\n'
    body = facts_list(_facts(model)) + verdict + _BODY + notes_list(model["assumptions"])
    return html_page(title, ("canvas", "memory"), body, packed(model))


def _facts(model: dict[str, Any]) -> Iterator[tuple[str, str]]:
    statistics = model["statistics"]
    for name in ("argument", "output", "alias", "temp"):
        yield (
            f"{name}s" if name != "alias" else "aliased",
            human_bytes(statistics[f"{name}_size_in_bytes"]),
        )
    yield "total", human_bytes(statistics["total"])
    yield "constants", human_bytes(statistics["constant"])
    yield "fragmentation", human_bytes(statistics["fragmentation"])
    yield "peak", human_bytes(model["peak"])
    yield "order", model["order"]


def packed(model: dict[str, Any]) -> dict[str, Any]:
    """What the page's script reads: columns, and each text once, by its number in `texts`."""
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    buffers = model["buffers"]
    columns: dict[str, list[int]] = {name: [b[name] for b in buffers] for name in _COLUMNS}
    columns |= {name: [number(b[name]) for b in buffers] for name in _TEXTS}
    columns["start"] = [b["live"][0] for b in buffers]
    columns["end"] = [b["live"][1] for b in buffers]
    peak = model["peak_instruction"]
    return {
        "peak": model["peak"],
        "throughout": model["throughout"],
        "positions": model["positions"],
        "peakPosition": 0 if peak is None else peak["position"],
        "limit": None if model["fit"] is None else model["fit"]["limit"],
        "timeline": model["timeline"],
        "instructions": [number(name) for name in model["instructions"]],
        "allocations": [
            {"size": a["size"], "kind": a["kind"], "color": a["color"], "holds": a["holds"]}
            for a in model["allocations"]
        ],
        "buffers": columns,
        "texts": list(texts),
    }


_BODY = """<div class="bar">
<input id="filter" type="search" placeholder="filter: op_name, name, shape, source, opcode"
  aria-label="filter">
<label>color <select id="color"><option value="scope">scope</option>
<option value="kind">kind</option><option value="shape">shape</option>
<option value="source">source</option><option value="computation">computation</option></select>
</label>
<label>addresses <select id="space"></select></label>
<button id="peak">peak</button> <button id="all">whole program</button>
<span id="legend"></span></div>
<h2>Memory over time</h2>
<canvas id="time" aria-label="memory over the positions of the schedule"></canvas>
<h2>Addresses over time</h2>
<canvas id="packing" aria-label="buffers at their addresses over time"></canvas>
<p class="hint">Wheel: zoom time; with Shift: addresses. Drag: move. Click: what is alive there.
Double click: whole program.</p>
<h2 id="alive"></h2>
<table><thead><tr><th>size</th><th>share</th><th>kind</th><th>shape</th><th>from</th><th>to</th>
<th>buffer</th><th>op_name</th><th>source</th></tr></thead><tbody id="rows"></tbody></table>
"""
