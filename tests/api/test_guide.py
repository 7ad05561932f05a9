"""The guide to the Python API runs as it is written, and its pass works wherever passes do."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.page_examples import blocks

import hloopt
from hloopt.cli import main
from hloopt.pass_framework import registry
from hloopt.pass_framework.registry import ENTRY_POINTS

PAGE = "python_api.md"
CHANGED = ["x", "y", "subtract", "loss"]


@pytest.fixture
def guide(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The files of the guide, in the folder to work in, by name; its pass is not known yet."""
    pieces = [block for block in blocks(root, PAGE, "python") if block.startswith("# my_passes.py")]
    files = {
        "step.hlo": blocks(root, PAGE, "hlo")[0],
        "my_passes.py": pieces[0],
        "mine.yaml": blocks(root, PAGE, "yaml")[0],
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield files
    sys.modules.pop("my_passes", None)


def module_of(guide: dict[str, str], *, scheduled: bool) -> hloopt.Module:
    text = guide["step.hlo"]
    assert ", is_scheduled=true" in text
    return hloopt.parse_module(text if scheduled else text.replace(", is_scheduled=true", ""))


def test_the_guide_runs_from_its_beginning_to_its_end(
    root: Path, guide: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "my_passes"}
    pieces = [block for block in blocks(root, PAGE, "python") if "jax" not in block]
    chapters = [block for block in pieces if "hloopt.proto" not in block]
    assert len(chapters) == 8
    for block in chapters:
        exec(block, names)
    printed = capsys.readouterr().out.splitlines()
    assert "back = f32[8]{0} negate(error)" in printed
    assert "applied negated-difference back is a difference" in printed
    assert "[ 1.  0.  1.  4.  9. 16. 25. 36.]" in printed
    assert any(line.startswith("Validation(comparisons=2, seeds=3") for line in printed)
    shown = [line.rpartition("# ")[2] for block in chapters for line in block.splitlines()]
    assert {"back = f32[8]{0} negate(error)", "[ 1.  0.  1.  4.  9. 16. 25. 36.]"} <= {*shown}
    assert [i.name for i in hloopt.load("out.hlo").entry.instructions] == CHANGED


@pytest.mark.parametrize("scheduled", [True, False])
@pytest.mark.parametrize("passes", ["negated-difference,dce", "mine.yaml"])
def test_its_pass_works_with_and_without_a_schedule(
    guide: dict[str, str], passes: str, *, scheduled: bool
) -> None:
    importlib.import_module("my_passes")
    module = module_of(guide, scheduled=scheduled)
    x, y = np.arange(8.0), np.ones(8)
    before = hloopt.run(module, x, y)
    result = hloopt.opt(module, passes, validate="each")
    assert result.changed
    assert module.is_scheduled == scheduled
    assert {i.name for i in module.entry.instructions} == {*CHANGED}
    if scheduled:
        assert [i.name for i in module.entry.instructions] == CHANGED
    assert hloopt.verify_module(module) == []
    assert hloopt.run(module, x, y).tolist() == before.tolist()
    assert not hloopt.opt(module, passes).changed


def test_its_pass_works_on_the_command_line_through_an_entry_point(
    root: Path, guide: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, entries = blocks(root, PAGE, "toml")[0].partition(f'"{ENTRY_POINTS}"]\n')
    assert entries
    info = tmp_path / "my_passes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-passes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{entries.replace(chr(34), '')}")
    for arguments in (["--passes", "negated-difference,dce"], ["-p", "mine.yaml"]):
        assert main(["opt", "step.hlo", *arguments, "--validate"]) == 0
        module = hloopt.parse_module(capsys.readouterr().out)
        assert [i.name for i in module.entry.instructions] == CHANGED
    assert main(["passes", "negated-difference"]) == 0
    assert "Replace the negation of a difference" in capsys.readouterr().out


def test_no_name_that_was_public_is_gone() -> None:
    before = "HloError Module PrintOptions load parse_module print_module roundtrip_text save"
    assert {*before.split(), "verify_module"} <= {*hloopt.__all__}


@pytest.mark.slow
def test_its_pass_and_its_use_are_typed(root: Path, guide: dict[str, str], tmp_path: Path) -> None:
    chapters = [b for b in blocks(root, PAGE, "python") if "jax" not in b and "proto" not in b]
    (tmp_path / "guide.py").write_text("\n".join(chapters))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--config-file=", "my_passes.py", "guide.py"],
        env={"MYPYPATH": str(root / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("Success"), done.stdout + done.stderr
