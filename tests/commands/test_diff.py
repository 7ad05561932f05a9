"""`hloopt diff`: exit codes and formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

BEFORE = (
    "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"
)
AFTER = BEFORE.replace("negate", "abs")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "before.hlo", tmp_path / "after.hlo"]
    for path, text in zip(paths, (BEFORE, AFTER), strict=True):
        path.write_text(text)
    return list(map(str, paths))


def test_the_exit_code_says_whether_modules_differ(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", files[0], files[0]]) == 0
    capsys.readouterr()
    assert main(["diff", *files]) == 1
    out, err = capsys.readouterr()
    assert "negate" in out
    assert err == ""


def test_json_is_valid(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *files, "--format", "json"]) == 1
    assert "negate" in json.dumps(json.loads(capsys.readouterr().out))


def test_a_file_that_cannot_be_read_is_an_error(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", files[0], files[1] + "x"]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_memory_is_compared_where_modules_differ(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(files[1]).write_text(BEFORE.replace("negate(p)", "reverse(p), dimensions={0}"))
    assert main(["diff", *files]) == 1
    out = capsys.readouterr().out
    assert "arguments     16 B    16 B        =" in out
    assert main(["diff", *files, "--no-memory"]) == 1
    assert "arguments" not in capsys.readouterr().out
    assert main(["diff", files[0], files[0], "--memory"]) == 0
    assert "arguments" not in capsys.readouterr().out


def test_json_has_the_memory_of_both(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path(files[1]).write_text(BEFORE.replace("4]", "8]"))
    assert main(["diff", *files, "--format", "json"]) == 1
    memory = json.loads(capsys.readouterr().out)["memory"]
    assert memory["before"]["peak_memory_in_bytes"] == 32
    assert memory["after"]["peak_memory_in_bytes"] == 64
    assert {buffer["name"] for buffer in memory["left_peak"]} == {"p", "q"}
    assert {buffer["size"] for buffer in memory["entered_peak"]} == {32}


def test_a_module_whose_memory_is_unknown_is_compared_all_the_same(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    alias = "HloModule m, input_output_alias={ {7}: (0, {}) }"
    Path(files[1]).write_text(AFTER.replace("HloModule m", alias))
    assert main(["diff", *files]) == 1
    out = capsys.readouterr().out
    assert "negate" in out
    assert "no memory report: input_output_alias" in out
