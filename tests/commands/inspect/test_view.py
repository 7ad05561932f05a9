"""`hloopt view`: where it writes what, and what it refuses."""

from __future__ import annotations

import base64
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.reports.html.pages import Page

from hloopt.cli import main

MODULE = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] sine(p), metadata={op_name="jit(f)/net/sin"}
}
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "m.hlo").write_text(MODULE)
    return tmp_path / "m.hlo"


def test_a_page_stands_beside_its_module(path: Path, capsys: Capture) -> None:
    assert main(["view", str(path)]) == 0
    page = path.with_name("m.hlo.html")
    assert capsys.readouterr().err == f"wrote {page}\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_page_goes_where_it_is_asked_for(path: Path, capsys: Capture) -> None:
    assert main(["view", str(path), "-o", "-"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("<!doctype html>")
    assert err == ""


def test_what_comes_from_stdin_goes_to_stdout(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(MODULE.encode())))
    assert main(["view", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")


def test_the_page_of_a_difference_stands_beside_the_module_after(
    path: Path, tmp_path: Path, capsys: Capture
) -> None:
    after = tmp_path / "after.hlo"
    after.write_text(MODULE.replace("sine", "cosine"))
    assert main(["view", str(path), str(after)]) == 0
    assert capsys.readouterr().err == f"wrote {after}.changes.html\n"


def test_the_page_of_a_difference_has_what_is_compared(
    path: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    after = MODULE.replace("net/sin", "net/other")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(after.encode())))
    assert main(["diff", str(path), "-", "--html", str(page)]) == 1
    assert "op_name" in capsys.readouterr().out
    assert _changes(page)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(after.encode())))
    assert main(["diff", str(path), "-", "--html", str(page), "--ignore", "metadata"]) == 0
    assert _changes(page) == []


def _changes(page: Path) -> list[Any]:
    parsed = Page(page.read_text(encoding="utf-8"))
    ids = [attributes.get("id", "") for attributes in parsed.all("script")]
    found = json.loads(gzip.decompress(base64.b64decode(parsed.scripts[ids.index("changesData")])))
    assert isinstance(found, list)
    return found


def test_invalid_modules_are_compared_before_the_page_is_refused(
    path: Path, tmp_path: Path, capsys: Capture
) -> None:
    after, page = tmp_path / "after.hlo", tmp_path / "page.html"
    after.write_text(MODULE.replace("ROOT r = f32[8]", "ROOT r = f32[9]"))
    assert main(["diff", str(path), str(after), "--html", str(page)]) == 2
    out, err = capsys.readouterr()
    assert "f32[9]" in out
    assert "error[HLO3" in err
    assert not page.exists()


def test_two_modules_are_one_page(path: Path, tmp_path: Path) -> None:
    after, page = tmp_path / "after.hlo", tmp_path / "page.html"
    after.write_text(MODULE.replace("sine", "cosine"))
    assert main(["view", str(path), str(after), "-o", str(page)]) == 0
    assert 'id="changes"' in page.read_text(encoding="utf-8")
    assert main(["diff", str(path), str(after), "--html", str(page)]) == 1
    assert 'id="changes"' in page.read_text(encoding="utf-8")


def test_exports_need_no_page(path: Path, tmp_path: Path) -> None:
    dot, graph, trace = (tmp_path / name for name in ("g.dot", "g.json", "t.json"))
    exports = ["--dot", str(dot), "--model-explorer", str(graph), "--perfetto", str(trace)]
    assert main(["view", str(path), *exports, "--target", "h100_sxm"]) == 0
    assert dot.read_text().startswith('digraph "m" {')
    assert [each["id"] for each in json.loads(graph.read_text())["graphs"]] == ["e"]
    assert json.loads(trace.read_text())["traceEvents"]
    assert not path.with_name("m.hlo.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{path}", "-o", "{path}"], "-o would overwrite the input {path}"),
        (["{path}", "--dot", "{path}"], "--dot would overwrite the input {path}"),
        (["x.hlo", "{path}", "--dot", "{path}"], "--dot would overwrite the input {path}"),
        (["{path}", "--dot", "x", "--perfetto", "x"], "--dot and --perfetto cannot both be"),
        (["{path}", "--dot", "x", "-o", "./x"], "-o cannot both be written to"),
        (["{path}", "--dot", "/dev/stdout", "-o", "-"], "-o cannot both be written to"),
        (["{path}", "--perfetto", "x"], "error[HLO014]: a timeline needs a target"),
        (["-", "-"], "only one of two modules can come from standard input"),
    ],
)
def test_what_cannot_be_written(
    path: Path, arguments: list[str], words: str, capsys: Capture
) -> None:
    assert main(["view", *(each.format(path=path) for each in arguments)]) == 2
    assert words.format(path=path) in capsys.readouterr().err.replace("\n", " ")
    assert path.read_text() == MODULE


def test_pages_of_differences_are_of_files(path: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = str(tmp_path)
    assert main(["diff", folder, folder, "--html", str(tmp_path / "x.html")]) == 2
    assert "--html is for two files, not folders" in capsys.readouterr().err
    assert main(["diff", str(path), str(path), "--html", str(path)]) == 2
    assert f"--html would overwrite the input {path}" in capsys.readouterr().err.replace("\n", " ")
