"""Examples in pages of the docs: code blocks, and commands with their output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hloopt.cli import main


def blocks(root: Path, page: str, language: str) -> list[str]:
    """The code blocks of a page of docs/ in a language."""
    text = (root / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def work_in(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go where examples run: testdata/ is there, build/ is empty, lines have 80 columns."""
    (tmp_path / "testdata").symlink_to(root / "testdata")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def assert_printed(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the commands of a console block; what is shown is printed, in order, but for `⋮`."""
    for example in page.replace(" \\\n", " ").split("$ hloopt ")[1:]:
        command, _, shown = example.partition("\n")
        assert main(command.split()) == int(
            command.startswith(("diff ", "lint ", "numerics "))
        )  # these find things
        printed = "\n".join(map(_without_times, "".join(capsys.readouterr()).splitlines()))
        for part in filter(str.strip, shown.split("⋮")):
            lines = "\n".join(map(_without_times, part.strip("\n").splitlines()))
            _, found, printed = printed.partition(lines)
            assert found == lines


def _without_times(line: str) -> str:
    """A line of a page without column widths, and without times of this run."""
    line = re.sub(r"( (?:yes|no) .*) [\d.,]+$", r"\1", " ".join(line.split()))
    return re.sub(r"[\d.]+ s$", "s", line)
