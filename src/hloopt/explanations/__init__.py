"""Explanations of codes: a text for each error, `HLO101.md` beside this module, and for each rule
of lint, `rules/HLL101.md`.

The first line of a text is `# CODE: title`. The first fenced example makes the error or the
finding, the others do not; tests run them.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
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
"""The subject of an error by the first digit of its code."""
RULE_FAMILIES = {
    "0": "Schedule",
    "1": "Collectives",
    "2": "Sharding",
    "3": "Precision and layout",
    "4": "Memory",
    "5": "Loops",
    "6": "Limits",
    "7": "Hygiene",
}
"""The subject of a rule by the first digit of its code."""
_RULE = "HLL"


class Explanation(NamedTuple):
    """A code, what it stands for in a few words, and the whole text in Markdown."""

    code: str
    title: str
    text: str

    @property
    def family(self) -> str:
        families = RULE_FAMILIES if self.code.startswith(_RULE) else FAMILIES
        return families[self.code[len(_RULE)]]


def codes() -> list[str]:
    """All codes of errors, in order."""
    return _codes_in(files(__name__))


def rule_codes() -> list[str]:
    """All codes of rules, in order."""
    return _codes_in(files(__name__).joinpath("rules"))


def _codes_in(folder: Traversable) -> list[str]:
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".md") for name in names if name.endswith(".md"))


def explain(code: str) -> Explanation | None:
    """The explanation of a code of an error or a rule; None where there is no such code."""
    folder = files(__name__)
    if code.startswith(_RULE):
        folder = folder.joinpath("rules")
    if code not in _codes_in(folder):
        return None
    text = folder.joinpath(f"{code}.md").read_text(encoding="utf-8")
    head, _, _ = text.partition("\n")
    return Explanation(code, head.removeprefix(f"# {code}: "), text)
