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


def test_json_has_what_the_analysis_knows(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "call-graph", str(path), "--format", "json"]) == 0
    [report] = json.loads(capsys.readouterr().out)
    leaf, entry = report.pop("computations")
    assert report == {"file": str(path), "module": "m", "entry": "e", "is_flattened": False}
    assert entry["callees"] == ["leaf"]
    assert entry["call_sites"][0] == {
        "instruction": "c",
        "opcode": "call",
        "context": "control_flow",
        "called": ["leaf"],
    }
    assert leaf == {
        "name": "leaf",
        "execution_thread": "main",
        "instructions": 2,
        "context": "control_flow",
        "depth": 1,
        "is_reachable": True,
        "why_not_flat": "it is control flow and is called from 2 places",
        "callers": ["e"],
        "callees": [],
        "caller_call_sites": [
            {"instruction": "c", "computation": "e"},
            {"instruction": "d", "computation": "e"},
        ],
        "call_sites": [],
    }


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


def test_long_names_leave_room_for_the_other_columns(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(TEXT.replace("leaf", "leaf" * 40).replace("d = ", f"{'d' * 90} = "))
    assert main(["analyze", "call-graph", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("leaf"))
    assert len(row) <= 80
    assert row.split() == [row.split()[0], "control", "flow", "2", "1", "1", "0", "c", "+1"]


def test_long_names_of_callers_leave_room_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "m.hlo"
    path.write_text(
        TEXT.replace("leaf", "leaf" * 20)
        .replace(" c = ", f" {'c' * 70} = ")
        .replace("call(c)", f"call({'c' * 70})")
    )
    assert main(["analyze", "call-graph", str(path)]) == 0
    out = capsys.readouterr().out
    assert "instrs  depth  callers  callees  called by" in out
    assert "control flow" in out


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


def test_many_ends_share_a_line_of_the_tree(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reducers = "".join(
        f"r.{i} {{ a.{i} = f32[] parameter(0) b.{i} = f32[] parameter(1)"
        f" ROOT s.{i} = f32[] add(a.{i}, b.{i}) }}\n"
        for i in range(9)
    )
    reduces = "".join(
        f"  t.{i} = f32[] reduce(v, p), dimensions={{0}}, to_apply=r.{i}\n" for i in range(5)
    )
    path.write_text(
        f"HloModule m\n{reducers}ENTRY e {{\n  p = f32[] parameter(0)\n"
        f"  v = f32[3]{{0}} parameter(1)\n{reduces}  ROOT u = f32[] negate(p)\n}}\n"
    )
    assert main(["analyze", "call-graph", str(path), "--tree"]) == 0
    out = capsys.readouterr().out
    assert "└─ 5 embedded (reduce x 5)\n4 computations called by nothing\n" in out


def test_a_deep_tree_says_how_deep_it_is(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    depth = 3000
    links = "".join(
        f"f.{i} {{ p.{i} = f32[] parameter(0)"
        f" ROOT c.{i} = f32[] call(p.{i}), to_apply=f.{i - 1} }}\n"
        for i in range(1, depth)
    )
    path.write_text(
        f"HloModule m\nf.0 {{ p.0 = f32[] parameter(0) ROOT c.0 = f32[] negate(p.0) }}\n{links}"
        f"ENTRY e {{ p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f.{depth - 1} }}\n"
    )
    assert main(["analyze", "call-graph", str(path), "--tree", "--top", "5000"]) == 0
    out = capsys.readouterr().out
    assert "(3000 deep)" in out.replace(",", "")
    assert max(map(len, out.splitlines())) <= 80
