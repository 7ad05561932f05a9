"""Two texts as a unified diff."""

from __future__ import annotations

from difflib import unified_diff as difflib_unified_diff


def unified_diff(before: str, after: str, path: str) -> str:
    """What became of the file at `path`; every line of the result ends in a line end."""
    lines = difflib_unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), path, path
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
