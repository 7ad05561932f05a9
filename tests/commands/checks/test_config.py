"""`hloopt config`: the settings that count, and where each is from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hloopt.checks.expectations.files import ExpectationFile
from hloopt.checks.lint.configuration import KEYS
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.settings import EXPECT_KEYS, TEST_KEYS, GoldenSettings
from hloopt.cli import main
from hloopt.pass_framework.options import infos_of

Capture = pytest.CaptureFixture[str]
TEXT = """\
[lint]
ignore = ["HLL402"]

[lint.rules.HLL003]
share = "2%"

[lint.per-op-name-ignores]
"*/embed" = ["HLL105"]

[expect]
target = "b200"
max-guessed = 0.2

[test]
jobs = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(capsys: Capture, *arguments: str) -> dict[str, tuple[Any, str | None, int | None]]:
    """Value, file and line of each setting by its name."""
    assert main(["config", *arguments, "--format", "json"]) == 0
    return {
        f"{each['section']}.{each['setting']}": (each["value"], each["file"], each["line"])
        for each in json.loads(capsys.readouterr().out)
    }


def test_every_setting_is_shown_and_its_default_is_the_one_that_counts(capsys: Capture) -> None:
    found = settings(capsys)
    options = {
        f"lint.rules.{rule.name}.{info.name}"
        for rule in all_rules().values()
        for info in infos_of(rule.options)
    }
    assert {*found} == options | {
        *(f"lint.{key}" for key in KEYS if key != "rules"),
        *(f"expect.{key}" for key in EXPECT_KEYS),
        *(f"test.{key}" for key in TEST_KEYS),
    }
    assert {(file, line) for _, file, line in found.values()} == {(None, None)}
    assert found["lint.select"][0] == list(LintSettings().select)
    assert found["lint.max-guessed"][0] == "5%"
    assert found["lint.rules.exposed-collective.share"][0] == "1%"
    assert found["test.paths"][0] == list(GoldenSettings().paths)
    assert found["test.jobs"][0] == os.cpu_count()
    assert ExpectationFile([]).target is found["expect.target"][0] is None


def test_what_is_set_has_its_file_and_line(folder: Path, capsys: Capture) -> None:
    path = folder / "hloopt.toml"
    path.write_text(TEXT)
    found = settings(capsys)
    assert {name: each for name, each in found.items() if each[1] is not None} == {
        "lint.ignore": (["HLL402"], str(path), 2),
        "lint.rules.exposed-collective.share": ("2%", str(path), 5),
        "lint.per-op-name-ignores": ({"*/embed": ["HLL105"]}, str(path), 7),
        "expect.target": ("b200", str(path), 11),
        "expect.max-guessed": (0.2, str(path), 12),
        "test.jobs": (3, str(path), 15),
    }
    assert {file for _, file, _ in settings(capsys, "--isolated").values()} == {None}


def test_pyproject_is_read_as_well(folder: Path, capsys: Capture) -> None:
    path = folder / "pyproject.toml"
    path.write_text('[tool.hloopt.test]\npaths = ["golden"]\n')
    assert settings(capsys)["test.paths"] == (["golden"], str(path), 2)
    other = folder / "other.toml"
    other.write_text("[test]\njobs = 1\n")
    assert settings(capsys, "--config", "other.toml")["test.jobs"] == (1, "other.toml", 2)


def test_the_page_says_what_is_from_where(folder: Path, capsys: Capture) -> None:
    assert main(["config", "--show"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("no settings are read: all are defaults\n")
    assert main(["config"]) == 0
    assert capsys.readouterr().out == shown
    (folder / "hloopt.toml").write_text(TEXT)
    assert main(["config"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"settings of {folder / 'hloopt.toml'}"
    rows = [line.split() for line in lines]
    assert ["ignore", '["HLL402"]', "hloopt.toml:2"] in rows
    assert ["target", '"b200"', "hloopt.toml:11"] in rows
    assert ["cost-model", "not", "set", "default"] in rows
    assert [row for row in rows if len(row) == 1] == [["lint"], ["expect"], ["test"]]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("[exepct]\n", ":1:2", "did you mean 'expect'?"),
        ("[expect\n", ":1:", "not TOML"),
        ("[expect]\ntarget = [\n", ":2:", "not TOML"),
        ("expect = 3\n", ":1:1", "'expect' is not a table"),
        ('[expect]\ntraget = "b200"\n', ":2:1", "did you mean 'target'?"),
        ('[expect]\ntarget = "b20"\n', ":2:1", "no target 'b20'"),
        ("[expect]\ntarget = 3\n", ":2:1", "'target' is not a string"),
        ('[expect]\ncost-model = "slo"\n', ":2:1", "did you mean 'sol'?"),
        ("[expect]\nmax-guessed = []\n", ":2:1", "'[]' is not a share"),
        ("[test]\npath = []\n", ":2:1", "did you mean 'paths'?"),
        ("[test]\npaths = []\n", ":2:1", "'paths' is empty"),
        ('[test]\npaths = "t"\n', ":2:1", "'paths' is not a list of strings"),
        ("[test]\njobs = 0\n", ":2:1", "'jobs' is not a positive integer"),
        ('[lint]\nselect = ["HLL9"]\n', ":2:1", "no rule is called 'HLL9'"),
        ("[lint.rules.flops]\nlimt = 3\n", ":2:1", "did you mean 'limit'?"),
    ],
)
def test_a_mistake_is_one_message_with_its_place(
    text: str, place: str, message: str, capsys: Capture
) -> None:
    Path("hloopt.toml").write_text(text)
    assert main(["config"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("error[HLO802]") == 1
    assert f"hloopt.toml{place}" in captured.err
    assert message in captured.err


def test_one_file_or_none(capsys: Capture) -> None:
    for command in (["config"], ["expect", "x.hlo", "dots.count == 0"], ["test"]):
        assert main([*command, "--config", "a.toml", "--isolated"]) == 2
        assert "exclude each other" in capsys.readouterr().err
        assert main([*command, "--config", "missing.toml"]) == 2
        assert "missing.toml" in capsys.readouterr().err
