"""The packages of hloopt that may know others: dependencies point downwards only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_GROUND = {"collector", "diagnostics", "patterns", "preserves", "yaml_nodes"}
LAYERS = {
    "ir": _GROUND,
    "text": {*_GROUND, "ir", "split"},
    "targets": _GROUND,
    "verifier": {*_GROUND, "ir"},
    "interpreter": {*_GROUND, "ir"},
    # What an opcode makes of constants is said in one place, the kernels of the interpreter.
    "analysis": {*_GROUND, "ir", "targets", "interpreter"},
    "memory": {*_GROUND, "ir", "analysis", "targets"},
    # What is asynchronous, and on which stream, is said in one place, the scheduler.
    "simulation": {*_GROUND, "ir", "analysis", "targets", "passes"},
    "shrink": {*_GROUND, "ir", "verifier", "interpreter", "analysis"},
    "equivalence": {*_GROUND, "ir", "interpreter", "analysis"},
    "xla": {*_GROUND, "ir", "text", "interpreter"},
    "proto": {*_GROUND, "ir", "text"},
    "files": {*_GROUND, "ir", "text", "proto", "verifier"},
    "cost_models": {*_GROUND, "ir", "files", "analysis", "targets"},
    "passes": {
        *(*_GROUND, "ir", "text", "verifier", "interpreter", "analysis", "memory", "shrink"),
        *("files", "cost_models", "targets", "equivalence"),
    },
    "reports": {
        *(*_GROUND, "ir", "text", "interpreter", "targets", "analysis", "memory", "passes"),
        *("simulation", "cost_models", "equivalence"),
        "driver",  # the type of what it reports on
    },
}
"""What each package or module may import beside itself."""

INTERPRETER = {
    "arithmetic": {"limits", "values"},
    "kernels": {
        *("arithmetic", "values", "errors", "literals", "stand_ins", "plan", "evaluation"),
        "limits",
        *("dynamic_sizes", "scalar_calls", "reducers", "updates"),
    },
}
"""What folders of the interpreter may import of it beside themselves: nothing about devices."""


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_those_below(root: Path, layer: str) -> None:
    allowed = LAYERS[layer] | {layer}
    assert _imports_beside(root / "src" / "hloopt" / layer, "hloopt.", allowed) == []


@pytest.mark.parametrize("folder", INTERPRETER)
def test_what_computes_knows_nothing_of_devices(root: Path, folder: str) -> None:
    path = root / "src" / "hloopt" / "interpreter" / folder
    allowed = INTERPRETER[folder] | {folder}
    assert _imports_beside(path, "hloopt.interpreter.", allowed) == []


def _imports_beside(place: Path, package: str, allowed: set[str]) -> list[tuple[str, str]]:
    """The files of a folder or module that import anything of `package` that is not allowed."""
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    imported = [
        (str(path), name.removeprefix(package).split(".")[0])
        for path in files
        for name in _imports(path)
        if name.startswith(package)
    ]
    assert imported
    return [found for found in imported if found[1] not in allowed]


def _imports(path: Path) -> Iterator[str]:
    """What a file imports, within functions too, by its whole name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
