"""What is installed: names, versions, dependencies, data."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    with (root / "pyproject.toml").open("rb") as file:
        table: dict[str, Any] = tomllib.load(file)["project"]
    return table


def test_the_changelog_begins_with_this_version(root: Path, project: dict[str, Any]) -> None:
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == project["version"]


def test_the_console_script_exists(project: dict[str, Any]) -> None:
    target = project["scripts"]["hloopt"]
    assert callable(EntryPoint("hloopt", target, "console_scripts").load())


def test_every_import_is_of_a_declared_dependency(root: Path, project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    optional = [text for name, texts in extras.items() if name != "dev" for text in texts]
    requirements = [*project["dependencies"], *optional]
    declared = {re.split(r"[^\w-]", text)[0].lower() for text in requirements}
    imported = {
        name
        for path in sorted((root / "src" / "hloopt").rglob("*.py"))
        for name in _imports(path)
        if name not in sys.stdlib_module_names and name != "hloopt"
    }
    assert {
        {"yaml": "pyyaml", "google": "protobuf"}.get(name, name) for name in imported
    } <= declared


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.slow
def test_a_wheel_holds_all_that_runs_without_the_checkout(root: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, root], check=True)
    [wheel] = tmp_path.glob("hloopt-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    assert "hloopt/py.typed" in names
    pipelines = {path.name for path in (root / "pipelines").glob("*.yaml")}
    assert pipelines
    assert {f"hloopt/pipelines/{name}" for name in pipelines} <= names
    targets = {path.name for path in (root / "src" / "hloopt" / "targets").glob("*.yaml")}
    assert targets
    assert {f"hloopt/targets/{name}" for name in targets} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    listing = subprocess.run(
        [sys.executable, "-c", "from hloopt.cli import main; main()", "pipelines"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        check=True,
        capture_output=True,
        text=True,
    )
    assert all(name.removesuffix(".yaml") in listing.stdout for name in pipelines)
