"""The recipes of docs/ci.md, the hooks and the action do as they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.checks.expecting import STEP

from hloopt.files import load
from hloopt.text import print_module

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def bash(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder where `hloopt` and `python` are those of the tests."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    clean = {name: text for name, text in os.environ.items() if not name.startswith("GITHUB_")}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**clean, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def blocks(root: Path) -> list[tuple[str, str]]:
    return BLOCK.findall((root / "docs" / "ci.md").read_text(encoding="utf-8"))


@pytest.fixture
def dump(root: Path, tmp_path: Path) -> Path:
    """A folder with a program whose run dumps a step."""
    module = load(str(root / "testdata" / "mlp_psum_8dev.after_optimizations.hlo"))
    (tmp_path / "step.txt").write_text(print_module(module), encoding="utf-8")
    (tmp_path / "train_step.py").write_text(
        "import os, shutil\n"
        "folder = os.environ['XLA_FLAGS'].split()[0].partition('=')[2]\n"
        "os.mkdir(folder)\n"
        "name = 'module_0001.jit_train_step.cpu_after_optimizations.txt'\n"
        "shutil.copy('step.txt', os.path.join(folder, name))\n",
        encoding="utf-8",
    )
    return tmp_path


def test_a_step_has_to_be_as_expected(blocks: list[tuple[str, str]], dump: Path) -> None:
    (dump / "expect.yaml").write_text(blocks[0][1], encoding="utf-8")
    done = bash(blocks[1][1], dump)
    assert done.returncode == 0, done
    assert "3 checks: 3 passed" in done.stdout
    (dump / "expect.yaml").write_text(blocks[0][1].replace("<= 1\n", "<= 0\n"), encoding="utf-8")
    failed = bash(blocks[1][1].splitlines()[1], dump)
    assert failed.returncode == 1
    assert "gradients are combined" in failed.stdout


def test_no_step_may_become_worse(blocks: list[tuple[str, str]], dump: Path) -> None:
    write, compare, update = [text for _, text in blocks if "baseline" in text]
    step = dump / "step.hlo"
    step.write_text((dump / "step.txt").read_text(encoding="utf-8"), encoding="utf-8")
    assert bash(write, dump).returncode == 0
    assert bash(compare, dump).returncode == 0
    base = dump / "base.json"
    figures = base.read_text(encoding="utf-8")
    assert '"dots(lhs=f32, rhs=f32).count": 5' in figures
    base.write_text(figures.replace('f32).count": 5', 'f32).count": 4'), encoding="utf-8")
    worse = bash(compare, dump)
    assert worse.returncode == 1, worse
    assert "worse: 4 → 5, +25.0%" in worse.stdout
    assert bash(update, dump).returncode == 0
    assert bash(compare, dump).returncode == 0


def test_a_step_must_stay_the_same(blocks: list[tuple[str, str]], tmp_path: Path) -> None:
    same, changed = [text for _, text in blocks if "host" in text and "hloopt " in text][-2:]
    for host, text in (("host0", STEP), ("host1", STEP.replace("/src/", "/home/b/"))):
        (tmp_path / host).mkdir()
        (tmp_path / host / "step.hlo").write_text(text, encoding="utf-8")
    assert bash(same, tmp_path).returncode == 0
    assert bash(changed, tmp_path).returncode == 0
    other = STEP.replace("constant(5)", "constant(6)")
    (tmp_path / "host1" / "step.hlo").write_text(other, encoding="utf-8")
    assert bash(same, tmp_path).returncode == 1
    assert bash(changed, tmp_path).returncode == 1


@pytest.fixture
def action(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((root / "action.yml").read_text(encoding="utf-8"))
    return loaded


def variables(action: dict[str, Any], step: int = 1, **inputs: str) -> dict[str, str]:
    """The environment that the runner makes of inputs for a step that checks."""
    given = {name: each.get("default", "") for name, each in action["inputs"].items()} | inputs
    found = {}
    for name, text in action["runs"]["steps"][step]["env"].items():
        wanted = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text)
        assert wanted is not None
        found[name] = given[wanted[1]]
    return found


def test_no_input_is_part_of_the_text_of_a_script(action: dict[str, Any]) -> None:
    used = set()
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
        used.update(re.findall(r"inputs\.([\w-]+)", " ".join(step["env"].values())))
    assert used == action["inputs"].keys()


def test_the_action_annotates_and_fails(action: dict[str, Any], tmp_path: Path) -> None:
    script = action["runs"]["steps"][1]["run"]
    (tmp_path / "a step.hlo").write_text(STEP, encoding="utf-8")
    (tmp_path / "e.yaml").write_text("- dots.count == 0\n", encoding="utf-8")
    inputs = variables(
        action, files="a step.hlo\n", expectations="e.yaml", sarif="r.sarif", target="h100_sxm"
    )
    done = bash(script, tmp_path, GITHUB_STEP_SUMMARY="summary.md", **inputs)
    assert done.returncode == 1
    assert "::error file=a step.hlo,line=" in done.stdout
    assert "| dots.count == 0 | **failed** |" in (tmp_path / "summary.md").read_text(
        encoding="utf-8"
    )
    assert (tmp_path / "r.sarif").exists()
    (tmp_path / "e.yaml").write_text("- dots.count == 1\n", encoding="utf-8")
    assert bash(script, tmp_path, **inputs).returncode == 0


def test_the_action_runs_rules(action: dict[str, Any], tmp_path: Path) -> None:
    script = action["runs"]["steps"][2]["run"]
    (tmp_path / "a step.hlo").write_text(STEP, encoding="utf-8")
    inputs = variables(action, 2, files="a step.hlo\n", lint="HLL002", target="h100_sxm")
    done = bash(script, tmp_path, GITHUB_STEP_SUMMARY="summary.md", **inputs)
    assert done.returncode == 1, done
    assert "::warning file=a step.hlo,line=" in done.stdout
    assert "| HLL002 | **failed** |" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    inputs = variables(action, 2, files="a step.hlo\n", lint="HLL001")
    assert bash(script, tmp_path, **inputs).returncode == 0


def test_a_shell_runs_rules(blocks: list[tuple[str, str]], dump: Path) -> None:
    dumping, linting = (text for _, text in blocks if "dumps/*" in text)
    assert bash(dumping.splitlines()[0], dump).returncode == 0
    done = bash(linting, dump)
    assert done.returncode == 1, done
    assert "HLL002" in done.stdout


def test_inputs_are_never_run(action: dict[str, Any], tmp_path: Path) -> None:
    script = action["runs"]["steps"][1]["run"]
    nasty = "$(touch ran); `touch ran`; '\"; touch ran #"
    inputs = variables(action, files=nasty, expectations=nasty, baseline=nasty, tolerance=nasty)
    assert bash(script, tmp_path, **inputs).returncode == 2
    linting = variables(action, 2, files=nasty, lint=nasty, target=nasty)
    assert bash(action["runs"]["steps"][2]["run"], tmp_path, **linting).returncode == 2
    assert not (tmp_path / "ran").exists()


def test_hooks_are_a_manifest_of_pre_commit(root: Path, tmp_path: Path) -> None:
    done = bash(f"pre-commit validate-manifest '{root / '.pre-commit-hooks.yaml'}'", tmp_path)
    assert done.returncode == 0, done
    hooks = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    page = (root / "docs" / "ci.md").read_text(encoding="utf-8")
    assert set(re.findall(r"- id: ([\w-]+)", page)) <= {hook["id"] for hook in hooks}
    (tmp_path / "step.hlo").write_text(STEP, encoding="utf-8")
    assert bash(f"{hooks[0]['entry']} step.hlo", tmp_path).returncode == 0
    assert bash(f"{hooks[2]['entry']} 'dots.count == 1' step.hlo", tmp_path).returncode == 0
    assert bash(f"{hooks[3]['entry']} --select HLL001 step.hlo", tmp_path).returncode == 0
