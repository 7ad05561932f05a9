"""`hloopt memory` and `diff` on modules with several memory spaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.memory.spaces.spaced_modules import MODULES, A, V, module_of, without_spaces

from hloopt.cli import main

SIZE = 128 * 256 * 4


@pytest.fixture
def loop(tmp_path: Path) -> str:
    path = tmp_path / "loop.hlo"
    path.write_text(MODULES["loop"])
    return str(path)


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    """The output as one line."""
    return " ".join(capsys.readouterr().out.split())


def model(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["memory", *arguments, "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert isinstance(report, dict)
    return report


def test_each_memory_space_has_a_row(loop: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", loop]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Memory of HBM of loop on tpu, order: schedule"
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("VMEM", "SMEM"))}
    assert rows["VMEM"] == [
        *("VMEM", "S(1)", "256.0", "KiB", "256.0", "KiB", "512.0", "KiB", "0", "B"),
        *("1.0", "MiB", "44.4%"),
    ]
    assert rows["SMEM"][:4] == ["SMEM", "S(2)", "4", "B"]
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "by the rules that XLA:CPU and XLA:GPU share: those of XLA:TPU are not published" in text


def test_one_memory_space_is_a_report_of_its_own(
    loop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", loop, "--space", "vmem", "--target", "tpu_v5e"]) == 0
    out = shown(capsys)
    assert out.startswith("Memory of VMEM of loop on tpu")
    assert "peak at %y (add) in %body" in out
    assert "4 asynchronous moves to and from VMEM: " in out
    assert "of which the schedule hides" in out
    report = model(capsys, loop, "--space", "S(1)")
    assert report["space"] == "VMEM"
    assert report["peak"] == 2 * SIZE
    assert {buffer["name"] for buffer in report["buffers"]} == {"cs{0}", "y"}
    assert {allocation["color"] for allocation in report["allocations"]} == {1}
    assert report["move_times"] is None  # without a target there are no times


def test_without_spaces_nothing_is_said_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flat.hlo"
    path.write_text(without_spaces(MODULES["loop"]))
    assert main(["memory", str(path), "--target", "tpu_v5e"]) == 0
    out = shown(capsys)
    assert out.startswith("Memory of loop on tpu")
    assert "memory space" not in out
    report = model(capsys, str(path))
    assert [space["name"] for space in report["spaces"]] == ["HBM"]
    assert report["spaces"][0]["traffic"] is None


def test_moves_that_nothing_runs_under_are_exposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The times are the copy's alone where its done follows its start, and none without moves."""
    path = tmp_path / "m.hlo"
    text = module_of(
        "m",
        f"""p = {A} parameter(0)
        q = f32[128,128]@ parameter(1)
        w = {A} parameter(2)
        c = ({V}, {A}, u32[]@2) copy-start(w)
        x = {A} dot(q, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        d = {V} copy-done(c)
        ROOT r = {A} add(x, d)""",
    )
    start = next(line for line in text.splitlines() if "copy-start" in line)
    done = next(line for line in text.splitlines() if "copy-done" in line)
    path.write_text(text.replace(done + "\n", "").replace(start, start + "\n" + done))
    times = model(capsys, str(path), "--space", "VMEM", "--target", "tpu_v5e")["move_times"]
    assert times["moves"] == 1
    assert times["exposed_seconds"] == pytest.approx(times["seconds"])
    path.write_text(text)
    hidden = model(capsys, str(path), "--space", "VMEM", "--target", "tpu_v5e")["move_times"]
    assert hidden["seconds"] == pytest.approx(times["seconds"])
    assert hidden["exposed_seconds"] < times["exposed_seconds"]
    path.write_text(MODULES["chain_2"])
    assert model(capsys, str(path), "--space", "VMEM", "--target", "tpu_v5e")["move_times"] is None


def test_each_memory_space_may_have_a_limit(loop: str, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["--limit", "1GiB", "--limit", "VMEM=256KiB"]
    assert main(["memory", loop, *limits]) == 0
    out = shown(capsys)
    assert "fits into vmem: 256.0 KiB of 256.0 KiB (--limit)" in out
    assert "are left for code, runtime and driver" in out
    assert main(["memory", loop, "--limit", "VMEM=255KiB", "--limit", "1GiB"]) == 1
    assert "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used" in shown(capsys)
    assert main(["memory", loop, "--limit", "host=1B"]) == 0  # nothing is there
    assert "fits into host: 0 B of 1 B" in shown(capsys)
    found = model(capsys, loop, *limits)["fits"]
    assert [(fit["space"], fit["needed"], fit["fits"]) for fit in found[1:]] == [
        (1, 2 * SIZE, True)
    ]


@pytest.mark.parametrize("option", [["--space", "VMAM"], ["--limit", "VMAM=1MiB"]])
def test_the_nearest_name_of_a_memory_space_is_told(
    loop: str, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", loop, *option]) == 2
    err = capsys.readouterr().err
    assert "XLA:TPU has no memory space 'VMAM'" in err
    assert "VMEM" in err.partition("help")[2]


def test_a_limit_of_a_memory_space_is_an_amount(
    loop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", loop, "--limit", "VMEM=64"]) == 2
    assert "'64' has no unit" in capsys.readouterr().err


def test_what_a_target_has_no_memory_for_is_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(MODULES["chain_2"].replace("S(1)", "S(9)"))
    assert main(["memory", str(path), "--limit", "1GiB", "--limit", "VMEM=1MiB"]) == 2
    out = shown(capsys)
    assert "memory spaces that are not modelled: S(9)" in out
    assert "no verdict against HBM 1.0 GiB (--limit) and VMEM 1.0 MiB (--limit)" in out


def test_a_comparison_shows_each_memory_space(
    loop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat = tmp_path / "flat.hlo"
    flat.write_text(without_spaces(MODULES["loop"]))
    assert main(["diff", str(flat), loop]) == 1
    out = shown(capsys)
    assert "VMEM 0 B 256.0 KiB" in out
    assert "to VMEM 0 B 512.0 KiB" in out
    assert main(["diff", str(flat), loop, "--format", "json"]) == 1
    spaces = json.loads(capsys.readouterr().out)["memory"]["spaces"]
    assert [space["name"] for space in spaces["before"]] == ["HBM"]
    assert [space["name"] for space in spaces["after"]] == ["HBM", "VMEM", "SMEM"]


def test_the_page_is_of_the_memory_space(
    loop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    line = ["memory", loop, "--space", "VMEM", "--target", "tpu_v5e", "--html", str(page)]
    assert main(line) == 0
    text = page.read_text(encoding="utf-8")
    assert "Memory of VMEM of loop on tpu" in text
    assert "moved to, from VMEM" in text
    assert "fits into vmem: 256.0 KiB of 128.0 MiB" in text


def test_a_target_has_a_limit_for_each_memory_it_knows(
    loop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = model(capsys, loop, "--target", "tpu_v5e")
    assert [(fit["space"], fit["limit"]) for fit in report["fits"][1:]] == [
        (1, 128 << 20),
        (2, 1 << 20),
    ]
    report = model(capsys, loop, "--target", "h100_sxm")  # which has none of them
    assert [fit["space"] for fit in report["fits"]] == [0]
    report = model(capsys, loop, "--target", "tpu_v5e", "--limit", "VMEM=1MiB")
    assert report["fits"][1]["limit"] == 1 << 20
