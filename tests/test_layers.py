"""The packages of hloopt that may know others: dependencies point downwards only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_GROUND = {"amounts", "collector", "diagnostics", "options", "patterns", "preserves", "yaml_nodes"}
LAYERS = {
    "ir": _GROUND,
    "text": {*_GROUND, "ir", "split"},
    "query": {*_GROUND, "ir"},
    "targets": _GROUND,
    "verifier": {*_GROUND, "ir"},
    "interpreter": {*_GROUND, "ir"},
    # What an opcode makes of constants is said in one place, the kernels of the interpreter.
    "analysis": {*_GROUND, "ir", "targets", "interpreter"},
    "memory": {*_GROUND, "ir", "analysis", "targets"},
    "scheduling": {*_GROUND, "ir", "analysis", "memory", "targets", "cost_models"},
    # What is asynchronous, and on which stream, is said in one place, the scheduler.
    "simulation": {*_GROUND, "ir", "analysis", "targets", "scheduling"},
    "shrink": {*_GROUND, "ir", "verifier", "interpreter", "analysis"},
    "equivalence": {*_GROUND, "ir", "interpreter", "analysis"},
    "xla": {*_GROUND, "ir", "text", "interpreter"},
    "proto": {*_GROUND, "ir", "text"},
    "files": {*_GROUND, "ir", "text", "proto", "verifier"},
    "cost_models": {*_GROUND, "ir", "files", "analysis", "targets"},
    "pass_framework": {
        *(*_GROUND, "ir", "text", "verifier", "interpreter", "analysis", "files"),
        *("shrink", "equivalence", "targets", "query"),
    },
    "passes": {
        *(*_GROUND, "ir", "text", "verifier", "interpreter", "analysis", "memory", "shrink"),
        *("files", "cost_models", "targets", "equivalence", "pass_framework", "scheduling"),
    },
    "reports": {
        *(*_GROUND, "ir", "text", "interpreter", "targets", "analysis", "memory", "passes"),
        *("pass_framework", "simulation", "scheduling", "cost_models", "equivalence"),
        "driver",  # the type of what it reports on
    },
}
"""What each package or module may import beside itself."""

PASSES = {
    "rewriting": set[str](),
    "simplification": {"rewriting"},
    "call_graph": {"rewriting", "simplification"},
    "control_flow": {"rewriting", "simplification", "call_graph"},
    "collectives": {"rewriting", "simplification"},
    "async_ops": {"rewriting"},
    "scheduling": {"rewriting"},
    "copy_insertion": {"simplification"},
}
"""The families of passes, and those whose modules each may import."""

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


@pytest.mark.parametrize("family", PASSES)
def test_a_family_of_passes_imports_only_those_below(root: Path, family: str) -> None:
    path = root / "src" / "hloopt" / "passes" / family
    assert _imports_beside(path, "hloopt.passes.", PASSES[family] | {family}) == []


def test_every_pass_is_in_a_family(root: Path) -> None:
    folders = (root / "src" / "hloopt" / "passes").iterdir()
    assert {f.name for f in folders if f.is_dir() and f.name != "__pycache__"} == PASSES.keys()


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
