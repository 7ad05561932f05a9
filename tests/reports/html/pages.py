"""What tests read of a page: its tags, what it loads, its data and its scripts."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

_VOID = ("meta", "input", "wbr")


class Page(HTMLParser):
    """A page taken apart; fails where its tags do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.ids: set[str] = set()
        self.loads: list[str] = []
        """What it would fetch."""
        self.elements: list[tuple[str, dict[str, str], tuple[str, ...]]] = []
        """Each tag with its attributes and the tags around it."""
        self.texts: list[tuple[str, str]] = []
        """Each text with the tag it is in."""
        self.scripts: list[str] = []
        self.style = ""
        self._open: list[str] = []
        self._around: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.ids.add(attributes.get("id", ""))
        self.loads += [attributes[name] for name in ("src", "href") if name in attributes]
        self.elements.append((tag, attributes, tuple(self._around)))
        if tag == "script":
            self.scripts.append("")
        if tag not in _VOID:
            self._open.append(tag)
            self._around.append(attributes.get("class", ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {n: v or "" for n, v in attrs}, tuple(self._around)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self._around.pop()

    def handle_data(self, data: str) -> None:
        tag = self._open[-1] if self._open else ""
        if tag == "script":
            self.scripts[-1] += data
        elif tag == "style":
            self.style += data
        else:
            self.texts.append((tag, data))

    @property
    def data(self) -> Any:
        return json.loads(self.scripts[0])

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of all elements with a tag."""
        return [attributes for name, attributes, _ in self.elements if name == tag]

    def text_of(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def column_texts(column: dict[str, Any]) -> list[str]:
    """The texts of things in a column of a page."""
    texts: list[str] = []
    before = ""
    for shared, rest in zip(column["texts"][::2], column["texts"][1::2], strict=True):
        before = before[:shared] + rest
        texts.append(before)
    return [texts[number] for number in column["at"]] if column["at"] else texts
