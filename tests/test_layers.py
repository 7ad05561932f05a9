"""The packages of hloopt stand in one order, modules import each other in one direction, and
files, functions and folders stay small enough to be read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

RANKS: tuple[tuple[str, ...], ...] = (
    (
        "collector",
        "diagnostics",
        "explanations",
        "patterns",
        "preserves",
        "read_log",
        "signals",
        "yaml_nodes",
    ),
    (
        "amounts",
        "golden",
        "options",
        "plain_data",
        "processes",
        "split",
        "token_reader",
        "yaml_reader",
    ),
    ("ir", "search_budget", "targets"),
    ("interpreter", "query", "text", "verifier"),
    ("proto", "xla"),
    ("files",),
    ("analysis",),
    ("cost_models", "equivalence", "memory", "sharding", "shrink"),
    ("memory_space", "scheduling"),
    ("pass_framework", "simulation"),
    ("passes",),
    ("reports",),
    ("checks", "dumps"),
    ("compilers",),
    ("reduction", "tuning"),
    ("api", "defects", "driver", "testing"),
    ("hloopt",),  # the names of the Python API; its version is everybody's
    ("jax",),
    ("commands", "pytest_plugin"),
    ("cli",),
    ("__main__",),
    ("hlo_opt",),
)
"""The packages and top-level modules: each imports only what stands in lines above its own.

The tables of passes and commands name modules of higher rank, which are imported when they run.
"""

IR_CORE = frozenset(
    f"hloopt.ir.{name}"
    for name in ("computation", "indexed_operands", "instruction", "lookup", "module")
)
"""The modules that import each other: an instruction, and what holds it."""

PASSES = (
    ("rewriting",),
    ("async_ops", "scheduling", "simplification"),
    (
        *("call_graph", "collectives", "copy_insertion", "dots", "expanders", "memory_space"),
        *("precision", "reductions", "rematerialization"),
    ),
    ("control_flow", "despecialization"),
    ("overlap",),
)
"""The families of passes, as RANKS."""

INTERPRETER = {
    "arithmetic": {"limits", "values"},
    "kernels": {
        *("arithmetic", "values", "errors", "literals", "stand_ins", "plan", "evaluation"),
        "limits",
        *("dynamic_sizes", "scalar_calls", "reducers", "updates"),
    },
}
"""What folders of the interpreter may import of it beside themselves: nothing about devices."""

MOST_LINES = 400
MOST_LINES_OF_FUNCTION = 60
MOST_MODULES = 25


# -- the order of packages ------------------------------------------------------------------------


def test_every_package_has_a_rank(root: Path) -> None:
    ranked = [name for rank in RANKS for name in rank]
    assert len(ranked) == len(set(ranked))
    assert {*ranked} == {*map(_package, _graph(root))}


def test_a_package_imports_only_those_of_lower_rank(root: Path) -> None:
    rank_of = {name: number for number, rank in enumerate(RANKS) for name in rank}
    upwards = {
        f"{own} -> {other}"
        for own, imported in _between_packages(root).items()
        for other in imported
        if rank_of[other] >= rank_of[own]
    }
    assert upwards == set()


def test_no_circle_of_packages(root: Path) -> None:
    assert list(TopologicalSorter(_between_packages(root)).static_order())


def test_no_circle_of_modules_but_in_the_core_of_ir(root: Path) -> None:
    def node(module: str) -> str:
        return "core" if module in IR_CORE else module

    assert _graph(root).keys() >= IR_CORE
    assert list(TopologicalSorter(_contracted(_graph(root), node)).static_order())


def test_a_family_of_passes_imports_only_those_of_lower_rank(root: Path) -> None:
    rank_of = {name: number for number, rank in enumerate(PASSES) for name in rank}
    folders = (root / "src" / "hloopt" / "passes").iterdir()
    assert {f.name for f in folders if f.is_dir() and f.name != "__pycache__"} == rank_of.keys()
    families = {family: _within(root, "passes", family) - {family} for family in rank_of}
    assert not [
        (own, other)
        for own, imported in families.items()
        for other in imported
        if rank_of[other] >= rank_of[own]
    ]


@pytest.mark.parametrize("folder", INTERPRETER)
def test_what_computes_knows_nothing_of_devices(root: Path, folder: str) -> None:
    assert _within(root, "interpreter", folder) - {folder} <= INTERPRETER[folder]


# -- sizes ----------------------------------------------------------------------------------------


def test_no_file_is_too_long(root: Path) -> None:
    lengths = {path: text.count("\n") for path, text in _texts(root).items()}
    assert _too_large(lengths, MOST_LINES) == {}


def test_no_function_is_too_long(root: Path) -> None:
    lengths = {
        f"{path}: {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, text in _texts(root).items()
        for node in ast.walk(_tree(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert _too_large(lengths, MOST_LINES_OF_FUNCTION) == {}


def test_no_folder_has_too_many_modules(root: Path) -> None:
    counts: dict[str, int] = {}
    for path in _texts(root):
        folder = path.rpartition("/")[0]
        if path.startswith(("src/", "tests/")):
            counts[folder] = counts.get(folder, 0) + 1
    assert _too_large(counts, MOST_MODULES) == {}


def _too_large(sizes: Mapping[str, int], most: int) -> dict[str, int]:
    assert sizes
    return {place: size for place, size in sizes.items() if size > most}


# -- reading the sources --------------------------------------------------------------------------


@cache
def _texts(root: Path) -> dict[str, str]:
    """The sources by path."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for top in ("src", "tools", "tests", "bench")
        for path in sorted((root / top).rglob("*.py"))
    }


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _graph(root: Path) -> dict[str, set[str]]:
    """The modules that each module imports: within functions and for types, too."""
    texts = {
        path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", "."): t
        for path, t in _texts(root).items()
        if path.startswith("src/")
    }
    return {name: set(_imports(_tree(text), texts)) for name, text in texts.items()}


def _imports(tree: ast.Module, modules: Iterable[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative import"
            if node.module == "hloopt" and [a.name for a in node.names] == ["__version__"]:
                continue
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found = full if full in modules else str(node.module)
                if found in modules:
                    yield found


def _package(module: str) -> str:
    """The package at the top of hloopt that a module is in; `hloopt` for that of all."""
    return module.split(".")[1] if "." in module else module


def _between_packages(root: Path) -> dict[str, set[str]]:
    return _contracted(_graph(root), _package)


def _contracted(graph: Mapping[str, set[str]], node: Callable[[str], str]) -> dict[str, set[str]]:
    """A graph with all modules that are of one `node` as one; edges within it are left out."""
    result: dict[str, set[str]] = {}
    for module, imported in graph.items():
        own = node(module)
        result.setdefault(own, set()).update({node(other) for other in imported} - {own})
    return result


def _within(root: Path, package: str, folder: str) -> set[str]:
    """The folders and modules of a package that a folder in it imports."""
    top = f"hloopt.{package}."
    found = {
        other.removeprefix(top).split(".")[0]
        for module, imported in _graph(root).items()
        if module.startswith(f"{top}{folder}.")
        for other in imported
        if other.startswith(top)
    }
    assert found
    return found
