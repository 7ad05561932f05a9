"""Explanations of error codes: one text per code, `HLO101.md` beside this module.

The first line of a text is `# CODE: title`. The first fenced example makes the error, the others
do not; tests run them.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

FAMILIES = {
    "0": "Files",
    "1": "Text",
    "2": "Structure of a module",
    "3": "Shapes and attributes",
    "4": "Devices, channels, asynchronous operations",
    "5": "Running",
    "6": "Pipelines",
    "7": "Failing passes",
    "8": "Checks",
    "9": "Defects",
}
"""The subject of a code by its first digit."""


class Explanation(NamedTuple):
    """A code, what it stands for in a few words, and the whole text in Markdown."""

    code: str
    title: str
    text: str

    @property
    def family(self) -> str:
        return FAMILIES[self.code[len("HLO")]]


def codes() -> list[str]:
    """All codes, in order."""
    names = (entry.name for entry in files(__name__).iterdir())
    return sorted(name.removesuffix(".md") for name in names if name.endswith(".md"))


def explain(code: str) -> Explanation | None:
    """The explanation of a code; None where there is no such code."""
    if code not in codes():
        return None
    text = files(__name__).joinpath(f"{code}.md").read_text(encoding="utf-8")
    head, _, _ = text.partition("\n")
    return Explanation(code, head.removeprefix(f"# {code}: "), text)
