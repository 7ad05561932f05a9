"""Two texts as a unified diff."""

from __future__ import annotations

from difflib import unified_diff as difflib_unified_diff

from hloopt.diagnostics import printable, printable_line


def unified_diff(before: str, after: str, path: str) -> str:
    """The outcome for the file at `path`; every line of the result ends in a line end.

    It is for people: what no eye sees is escaped.
    """
    name = printable(path)
    lines = difflib_unified_diff(before.split("\n"), after.split("\n"), name, name, lineterm="")
    return "".join(f"{printable_line(line)}\n" for line in lines)
