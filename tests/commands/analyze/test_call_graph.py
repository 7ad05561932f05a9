"""`hloopt analyze call-graph`: formats, limits, threads, several files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

TEXT = """HloModule m

leaf {
  x = f32[] parameter(0)
  ROOT n = f32[] negate(x)
}

ENTRY e {
  p = f32[] parameter(0)
  c = f32[] call(p), to_apply=leaf
  ROOT d = f32[] call(c), to_apply=leaf
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    return path


def test_json_has_the_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "call-graph", str(path), "--format", "json"]) == 0
    [report] = json.loads(capsys.readouterr().out)
    assert [computation["name"] for computation in report.pop("computations")] == ["leaf", "e"]
    assert report == {"file": str(path), "module": "m", "entry": "e", "is_flattened": False}


def test_several_files_are_reported_one_after_the_other(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path.parent / "n.hlo").write_text(TEXT.replace("HloModule m", "HloModule n"))
    assert main(["analyze", "call-graph", str(path.parent)]) == 0
    out = capsys.readouterr().out
    assert out.index("m.hlo") < out.index("graph of m") < out.index("n.hlo")
    assert main(["analyze", "call-graph", str(path.parent), "--dot"]) == 0
    assert capsys.readouterr().out.count("digraph") == 2


@pytest.mark.parametrize("view", [[], ["--tree"]])
def test_what_is_beyond_the_limit_is_counted(
    path: Path, view: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "call-graph", str(path), "--top", "1", *view]) == 0
    out = capsys.readouterr().out
    assert "… and 1 more; --top shows them" in out


def test_only_the_threads_asked_for_are_shown(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(TEXT.replace("}\n\nENTRY", '}, execution_thread="x"\n\nENTRY', 1))
    options = ["--execution-threads", "main, ", "--format", "json"]
    assert main(["analyze", "call-graph", str(path), *options]) == 0
    [report] = json.loads(capsys.readouterr().out)
    assert [computation["name"] for computation in report["computations"]] == ["e"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--execution-threads", "mian"], "nothing runs on a thread 'mian'; did you mean 'main'?"),
        (["--tree", "--format", "json"], "--tree is another form: not with --format json"),
    ],
)
def test_what_cannot_be_meant_is_an_error(
    path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "call-graph", str(path), *options]) == 2
    assert message in capsys.readouterr().err
