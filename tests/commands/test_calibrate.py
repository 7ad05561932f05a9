"""`hloopt calibrate` as on a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands.profiled import KERNELS, PROFILE

from hloopt.cli import main
from hloopt.targets import load_target


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(KERNELS, encoding="utf-8")
    Path("p.pbtxt").write_text(PROFILE, encoding="utf-8")


LINE = ["calibrate", "step.hlo", "--profile", "p.pbtxt", "--target", "h100_sxm"]


def test_the_report_says_what_changes_and_how_good_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(LINE) == 0
    out = capsys.readouterr().out
    assert "memory   3.4 TB/s   1.0 TB/s   -68.7%           3" in out
    assert "held out" in out
    assert "3 costs of the profile are above 0" in out
    assert "use it with --cost-model roofline" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_target_is_written_and_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LINE, "-o", "mine.yaml"]) == 0
    assert "wrote mine.yaml" in capsys.readouterr().err
    assert load_target("mine.yaml").memory_bandwidth == pytest.approx(2 * (1 << 20) / 2e-6)
    line = "cost step.hlo --latency --target mine.yaml --cost-model roofline --format json"
    assert main(line.split()) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["total"] == pytest.approx(6)


def test_a_target_on_stdout_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LINE, "-o", "-"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("title: NVIDIA H100 SXM, 80 GB, calibrated\n")
    assert "error" not in out


def test_json_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LINE, "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    (figure,) = report["figures"]
    assert figure["figure"] == "memory"
    assert figure["samples"] == 3
    assert [error["figure"] for error in report["errors"]] == ["memory", None]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"-o": "mine.txt"}, "a target is a file *.yaml"),
        ({"--target": "h101"}, "no target 'h101'"),
        ({"--profile": "none.pbtxt"}, "cannot read none.pbtxt"),
        ({"--profile": "step.hlo"}, "step.hlo"),
    ],
)
def test_mistakes(
    changed: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*LINE, *(word for pair in changed.items() for word in pair)]) == 2
    assert message in capsys.readouterr().err
    assert not Path("mine.txt").exists()


def test_a_profile_of_another_module_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.pbtxt").write_text('costs { name: "z" cost_us: 2 }', encoding="utf-8")
    assert main([*LINE, "-o", "mine.yaml"]) == 2
    err = capsys.readouterr().err
    assert "p.pbtxt has times of 0 instructions of m" in err
    assert "help: take a profile of this very module" in err
    assert not Path("mine.yaml").exists()
