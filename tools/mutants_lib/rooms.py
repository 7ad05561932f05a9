"""The rooms whose code is mutated: the one place that knows where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

ROOMS = {
    "collectives": ["src/hloopt/passes/collectives"],
    "scheduling": ["src/hloopt/scheduling", "src/hloopt/passes/scheduling"],
    "memory": ["src/hloopt/memory"],
    "rewriting": ["src/hloopt/passes/rewriting"],
    "control_flow": ["src/hloopt/passes/control_flow"],
}
"""Folders and files of each room, from the checkout."""


def files_of(root: Path, modules: Sequence[str]) -> dict[str, list[str]]:
    """The Python files of `modules` by room, as paths from `root`, sorted.

    A module is the name of a room, or a path below `root`, which is a room of its own. Raises
    ValueError for anything else.
    """
    return {module: _files(root, module, ROOMS.get(module, [module])) for module in modules}


def _files(root: Path, module: str, paths: list[str]) -> list[str]:
    found: set[Path] = set()
    for path in paths:
        place = root / path
        if not place.exists():
            raise ValueError(
                f"{module}: there is no {path}: rooms are {', '.join(ROOMS)}; "
                "anything else is a path from the checkout"
            )
        found.update([place] if place.is_file() else place.rglob("*.py"))
    return sorted(file.relative_to(root).as_posix() for file in found)
