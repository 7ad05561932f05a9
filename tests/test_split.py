"""Several modules in one file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.cli import main
from hloopt.diagnostics import Source
from hloopt.split import split_source

FIRST = "HloModule first\n\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT q = f32[] copy(p)\n}\n"
MARKER = "// ----- from a test\n"


@given(st.lists(st.sampled_from(["// -----\n", "// ----- a\n", "x\n", "\n", "// --\n"])))
def test_splitting_and_joining_gives_the_same_text(lines: list[str]) -> None:
    text = "".join(lines)
    file = split_source(Source("f", text))
    assert file.join([chunk.text for chunk in file.chunks]) == text
    assert len(file.chunks) == text.count("// -----") + 1


def test_chunks_know_their_first_line() -> None:
    file = split_source(Source("f", f"a\nb\n{MARKER}c\n{MARKER}d"))
    assert [chunk.first_line for chunk in file.chunks] == [1, 4, 6]


def test_a_result_without_line_end_does_not_swallow_the_marker() -> None:
    file = split_source(Source("f", f"a\n{MARKER}b\n"))
    assert file.join(["x", "y"]) == f"x\n{MARKER}y"


def test_markers_stay_in_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.hlo"
    path.write_text(FIRST + MARKER + FIRST.replace("first", "second"))
    assert main(["opt", str(path), "--passes", "dce", "--split-input-file"]) == 0
    assert capsys.readouterr().out == path.read_text()


def test_an_error_in_a_chunk_has_the_line_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = tmp_path / "two.hlo", tmp_path / "out.hlo"
    path.write_text(FIRST + MARKER + FIRST.replace("copy", "kopy"))
    arguments = ["opt", str(path), "--passes", "dce", "--split-input-file", "-o", str(output)]
    assert main(arguments) == 2
    assert f"--> {path}:12:18\n" in capsys.readouterr().err
    assert not output.exists()


def test_a_verifier_error_in_a_chunk_has_the_line_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.hlo"
    path.write_text(FIRST + MARKER + FIRST.replace("q = f32[]", "q = f32[3]{0}"))
    assert main(["verify", str(path), "--split-input-file"]) == 1
    assert f"--> {path}:12:" in capsys.readouterr().err
