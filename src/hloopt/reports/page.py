"""Reports as pages of their own: one HTML file, without network or libraries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any


def html_page(title: str, parts: Sequence[str], body: str, data: Any) -> str:
    """A document with the styles and scripts `pages/PART.css` and `.js`, those of all pages first.

    Scripts find `data` parsed in `data`, and can call `showTip(event, lines)`.
    """
    parts = ("page", *parts)
    styles, scripts = ("".join(_text(f"{part}.{kind}") for part in parts) for kind in ("css", "js"))
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title>\n",
            f"<style>\n{styles}</style></head><body>\n",
            f'<h1>{escape(title)}</h1>\n{body}<div id="tip"></div>\n',
            f'<script type="application/json" id="data">{text}</script>\n',
            f"<script>\n{scripts}</script></body></html>\n",
        )
    )


def _text(name: str) -> str:
    return files("hloopt.reports").joinpath("pages", name).read_text(encoding="utf-8")


def facts_list(facts: Iterable[tuple[str, str]]) -> str:
    """Names and figures in a row."""
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts
    )
    return f"<dl>{items}</dl>\n"


def notes_list(notes: Iterable[str]) -> str:
    """What figures rest on."""
    return f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>\n'
