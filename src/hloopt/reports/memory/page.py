"""The memory model as a page of its own: memory over time, and what lies at which address when."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from hloopt.reports.console.units import human_bytes
from hloopt.reports.html.columns import (
    Criterion,
    Grouping,
    TextColumn,
    scope_groupings,
    text_groupings,
)
from hloopt.reports.html.page import Column, as_html, data_table, facts_list, html_page, notes_list
from hloopt.reports.look import MEMORY
from hloopt.reports.memory.groups import without_layout

_TEXTS = ("computation", "opcode", "shape", "kind", "op_name", "source")
_MOST_GROUPS = 6
"""Of temporaries, each with a colour: more are hard to tell apart."""
_SET_ASIDE = {"parameter": "arguments", "output": "outputs", "constant": "constants"}
"""Memory set aside throughout, from the bottom of the picture: the labels."""


def memory_page(model: dict[str, Any], *, by: str = "scope", depth: int = 3) -> str:
    """A whole HTML document of a model (see `MemoryFindings.model`). Linear in it.

    To begin with, temporaries are told apart `by` scope (the first `depth` parts of op_name), kind,
    opcode, shape, source or computation.
    """
    space = f"{model['space']} of " if len(model["spaces"]) > 1 else ""
    title = f"Memory of {space}{model['module']} on {model['backend']}"
    facts = facts_list(_facts(model))
    table = data_table("buffers that are alive", _columns(model))
    body = facts + _verdict(model) + _BODY + table + notes_list(model["assumptions"])
    data = packed(model, by=by, depth=depth)
    return html_page(title, ("canvas", "memory"), body, data, notices=model["notices"])


def _verdict(model: dict[str, Any]) -> str:
    """Whether it fits, or why nothing is said of that; nothing without a limit."""
    if doubt := model["no_verdict"]:
        return f'<p class="doubt">{as_html(doubt)}</p>\n'
    return "".join(map(_fit, model["fits"]))


def _fit(fit: dict[str, Any]) -> str:
    into = f" into {fit['space_name']}" if fit["space"] else ""
    needed, limit = human_bytes(fit["needed"]), human_bytes(fit["limit"])
    text = fit["message"] or f"fits{into}: {needed} of {limit} ({fit['limit_source']})"
    return f'<p class="{"fits" if fit["fits"] else "exhausted"}">{as_html(text)}</p>\n'


def _facts(model: dict[str, Any]) -> Iterator[tuple[str, str]]:
    statistics = model["statistics"]
    for label, name in (
        ("arguments", "argument"),
        ("outputs", "output"),
        ("aliased", "alias"),
        ("temporaries", "temp"),
    ):
        yield label, human_bytes(statistics[f"{name}_size_in_bytes"])
    yield "total", human_bytes(statistics["total"])
    yield "constants", human_bytes(statistics["constant"])
    yield "fragmentation", human_bytes(statistics["fragmentation"])
    yield "peak", human_bytes(model["peak"])
    for use in model["spaces"][1:]:
        traffic = use["traffic"]
        yield use["name"], human_bytes(use["needed"])
        yield (
            f"moved to, from {use['name']}",
            f"{human_bytes(traffic['bytes_in'])}, {human_bytes(traffic['bytes_out'])}",
        )
        yield f"read in {use['name']}", f"{traffic['read_share']:.1%}"
    yield "order", model["order"]


def packed(model: dict[str, Any], *, by: str = "scope", depth: int = 3) -> dict[str, Any]:
    """The data of the page's script: columns, and each text of a column once.

    Of `buffers`, `start` is a difference to the one before, `length` a number of positions, and
    `name` that of a text of `instructions`.
    """
    buffers = model["buffers"]
    peak = model["peak_instruction"]
    lengths = [last - first + 1 for first, last in (b["live"] for b in buffers)]
    starts = [0, *(b["live"][0] for b in buffers)]
    texts = {name: TextColumn.of(b[name] for b in buffers) for name in _TEXTS}
    instructions = TextColumn.of(model["instructions"])
    names = TextColumn(instructions.numbers)  # most of them are those of instructions
    for buffer in buffers:
        names.add(buffer["name"])
    weights = [  # the bytes that temporaries hold, and how long
        0 if b["kind"] in _SET_ASIDE else b["size"] * length
        for b, length in zip(buffers, lengths, strict=True)
    ]
    groupings = [
        *scope_groupings(texts["op_name"], weights, depth=depth, most=_MOST_GROUPS),
        *text_groupings(texts, weights, _CRITERIA, most=_MOST_GROUPS),
    ]
    aside = [b for b in model["live_at_peak"] if b["kind"] in _SET_ASIDE]
    return {
        "peak": model["peak"],
        "throughout": model["throughout"],
        "positions": model["positions"],
        "peakPosition": 0 if peak is None else peak["position"],
        "limit": None if model["fit"] is None else model["fit"]["limit"],
        "hasShares": not model["doubts"],
        "instructions": instructions.packed(),
        "allocations": {
            "size": [a["size"] for a in model["allocations"]],
            "kind": TextColumn.of(a["kind"] for a in model["allocations"]).packed(),
            "color": [a["color"] for a in model["allocations"]],
        },
        "buffers": {
            "size": [b["size"] for b in buffers],
            "allocation": [b["allocation"] for b in buffers],
            "offset": [b["offset"] for b in buffers],
            "start": [start - before for before, start in pairwise(starts)],
            "length": lengths,
            "inTimeline": "".join("01"[b["in_timeline"]] for b in buffers),
            "name": names.at,
            **{name: column.packed() for name, column in texts.items()},
        },
        "setAside": {
            "size": [b["size"] for b in aside],
            **{name: TextColumn.of(b[name] for b in aside).packed() for name in _ASIDE_TEXTS},
        },
        "setAsideKinds": [
            {"kind": kind, "label": label, "fill": MEMORY[kind].fill}
            for kind, label in _SET_ASIDE.items()
        ],
        "groupings": [grouping.packed() for grouping in groupings],
        "by": _initial(groupings, by, depth),
    }


_ASIDE_TEXTS = ("name", *(name for name in _TEXTS if name != "opcode"))


_CRITERIA = (
    Criterion("kind", "kind", lambda _: "temporaries"),
    Criterion("opcode", "opcode"),
    Criterion("shape", "shape", without_layout),
    Criterion("source", "source"),
    Criterion("computation", "computation"),
)
"""The criteria that tell temporaries apart, beside scopes."""


def _initial(groupings: list[Grouping], by: str, depth: int) -> int:
    """The grouping to begin with; by shape where no op_name tells scopes apart."""
    names = [grouping.name for grouping in groupings]
    wanted = by
    if by == "scope":
        wanted = next((n for n in names if n.startswith(f"scope, {depth} ")), "shape")
    return names.index(wanted) if wanted in names else 0


def _columns(model: dict[str, Any]) -> list[Column]:
    """Of the table; no shares of a whole that is in doubt."""
    return [
        Column("size", "number"),
        *([] if model["doubts"] else [Column("share", "number")]),
        Column("kind"),
        Column("shape", "name"),
        Column("from", "number"),
        Column("to", "number"),
        Column("buffer", "name"),
        Column("op_name", "text"),
        Column("source", "path"),
    ]


_BODY = """<div class="bar">
<input id="filter" type="search" placeholder="filter: op_name, name, shape, source, opcode"
  aria-label="filter">
<label>temporaries by <select id="by"></select></label>
<label>addresses <select id="space"></select></label>
<button id="peak">peak</button> <button id="all">whole program</button></div>
<h2>Memory over the positions of the schedule</h2>
<ul class="legend" id="timeLegend"></ul>
<canvas id="time" aria-label="memory over the positions of the schedule"></canvas>
<h2>Addresses over the positions of the schedule</h2>
<ul class="legend" id="packingLegend"></ul>
<canvas id="packing" aria-label="buffers at their addresses over time"></canvas>
<p class="hint">Wheel or + and -: zoom; with Shift: addresses. Drag: move. Click: what is alive
there. Double click: whole program. Arrows move a pointer, Enter clicks.</p>
<h2 id="alive"></h2>
"""
