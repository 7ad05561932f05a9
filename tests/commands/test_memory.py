"""`hloopt memory`: formats, several files, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

TEXT = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"


def test_several_files_are_reported_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.hlo", "b.hlo"):
        (tmp_path / name).write_text(TEXT)
    assert main(["memory", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("peak at") == 2
    assert main(["memory", str(tmp_path), "--format", "json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [Path(report["file"]).name for report in reports] == ["a.hlo", "b.hlo"]


def test_an_invalid_module_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.hlo"
    path.write_text(TEXT.replace("q = f32[4]", "q = f32[5]"))
    assert main(["memory", str(path)]) == 2
    assert f"--> {path}:5:" in capsys.readouterr().err


def test_the_rules_of_a_backend_can_be_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(TEXT)
    assert main(["memory", str(path), "--backend", "gpu", "--allocations", "2"]) == 0
    out = capsys.readouterr().out
    assert "on gpu" in out
    assert "2 allocations, the largest first" in out


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    return str(path)


def test_a_limit_decides_the_exit_code(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", module, "--limit", "32B"]) == 0
    assert "fits: 32 B of 32 B" in capsys.readouterr().out
    assert main(["memory", module, "--limit", "31B"]) == 1
    out = capsys.readouterr().out
    assert "RESOURCE_EXHAUSTED: Ran out of memory" in out
    assert "What would help" in out
    assert "donate: 1 argument" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_target_is_a_limit(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", module, "--target", "h100-sxm"]) == 0
    assert "79.1 GiB (NVIDIA H100 SXM" in " ".join(capsys.readouterr().out.split())
    assert main(["memory", module, "--target", "h100-sxm", "--limit", "16B"]) == 1
    assert "(--limit)" in capsys.readouterr().out
    assert main(["memory", module, "--target", "h101"]) == 2
    assert "no target 'h101'" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["80 boxes", "0", "-1"])
def test_a_limit_is_an_amount(module: str, limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", module, "--limit", limit]) == 2
    assert "no amount: for example 80GiB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("memory", "--limit"),
        ("schedule", "--limit"),
        ("run", "--max-memory"),
        ("equivalent", "--max-memory"),
    ],
)
def test_a_size_without_a_unit_is_refused(
    module: str, command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [module] * (2 if command == "equivalent" else 1)
    assert main([command, *files, option, "80"]) == 2
    assert "'80' has no unit; there are B, KiB, MiB, GiB and" in capsys.readouterr().err
    assert main([command, *files, option, "80 MiB"]) in (0, 1)


def test_json_tells_fit_and_advice(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", module, "--limit", "31B", "--format", "json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    assert report["fit"]["fits"] is False
    assert report["advice"]["donations"][0]["saved"] == 16
    assert [buffer["name"] for buffer in report["buffers"]] == ["p", "q"]
    assert main(["memory", module, "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["fit"] is report["advice"] is None


def test_tables_come_by_scope_and_source(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    for by, label in (("scope", "(no op_name)"), ("source", "(no source)")):
        assert main(["memory", module, "--by", by, "--buffers", "5", "--allocations", "5"]) == 0
        out = capsys.readouterr().out
        assert label in out
        assert "2 buffers, the largest first" in out
        assert max(map(len, out.splitlines())) <= 80


def test_pictures_are_files(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    assert main(["memory", module, "--html", str(page), "--trace", str(trace)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "C", "X", "i"}
    assert "peak at" in capsys.readouterr().out
    (tmp_path / "n.hlo").write_text(TEXT)
    assert main(["memory", str(tmp_path), "--html", str(page)]) == 2
    assert "--html is for one file, not 2" in capsys.readouterr().err


def test_flags_of_xla_gpu_place_buffers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.hlo"
    collective = "a = f32[4]{0} sine(p)\n  c = f32[32]{0} all-gather(a), dimensions={0}\n"
    path.write_text(
        TEXT.replace("f32[4]{0} negate(p)", "f32[32]{0} negate(c)").replace(
            "  ROOT", f"  {collective}  ROOT"
        )
    )
    flag = ("--xla-flag", "xla_gpu_enable_nccl_user_buffers")
    assert main(["memory", str(path), *flag, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    report = report[0] if isinstance(report, list) else report
    assert report["backend"] == "gpu"
    assert {a["color"] for a in report["allocations"]} == {0, 1}
    assert main(["memory", str(path), *flag, "--backend", "cpu"]) == 2
    assert "--xla-flag is about XLA:GPU" in capsys.readouterr().err
    assert main(["memory", str(path), "--xla-flag", "xla_gpu_user_buffers"]) == 2
    assert "did you mean 'xla_gpu_enable_nccl_user_buffers'?" in capsys.readouterr().err
