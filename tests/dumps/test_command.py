"""`hloopt dumps`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from tests.dumps.dump_maker import OTHER_GROUPS, STEP, changed_from, write_dump

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HLOOPT_NO_CACHE")
    monkeypatch.setenv("HLOOPT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    for host in range(8):
        write_dump(tmp_path / "dump" / f"process-{host}")
    return tmp_path / "dump"


def test_hosts_that_agree(hosts: Path, capsys: Capture) -> None:
    assert main(["dumps", str(hosts)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("8 compilations on 8 hosts; 48 files, 40 of HLO, ")
    assert "hosts agree in 1\nmodule\n" in out
    assert " 9 → 8 " in out


def test_a_host_that_differs(hosts: Path, capsys: Capture) -> None:
    passes, end = changed_from(1, "{{0,1,2,3}}", OTHER_GROUPS)
    write_dump(hosts / "process-3", passes=passes, end=end)
    assert main(["dumps", str(hosts)]) == 1
    out = capsys.readouterr().out
    assert "hosts differ: jit_step\n  from simplification: algsimp on (" in out
    assert "first difference: %all-reduce.1 in main: replica_groups" in out
    assert "collectives in another order: jit_step, at number 1" in out
    command = next(line for line in out.splitlines() if line.startswith("  hloopt diff "))
    assert main(command.split()[1:]) == 1


def test_a_divergence_in_json(hosts: Path, capsys: Capture) -> None:
    passes, end = changed_from(2, "{{0,1,2,3}}", OTHER_GROUPS)
    write_dump(hosts / "process-3", passes=passes, end=end)
    assert main(["dumps", str(hosts), "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (divergence,) = found["divergences"]
    assert divergence["hosts"][1] == ["process-3"]
    assert divergence["first"]["where"] == "%all-reduce.7 in main"
    assert divergence["first"]["total"] == 1
    assert [each["hosts"] for each in found["mismatches"][0]["entries"]] == divergence["hosts"]


def test_a_second_run_is_from_the_cache_and_says_the_same(
    hosts: Path, cache: Path, capsys: Capture
) -> None:
    pages = []
    for options in ([], [], ["--no-cache"], ["-j", "1"]):
        assert main(["dumps", str(hosts), "--format", "json", *options]) == 0
        pages.append(capsys.readouterr().out)
    assert len(set(pages)) == 1
    assert len(list(cache.rglob("*.json"))) == 2


def test_the_cache_is_shown_and_emptied(hosts: Path, cache: Path, capsys: Capture) -> None:
    assert main(["cache"]) == 0
    assert capsys.readouterr().out == f"{cache}/results-1\n0 results, 0 B of at most 256.0 MiB\n"
    main(["dumps", str(hosts)])
    capsys.readouterr()
    assert main(["cache"]) == 0
    assert "\n2 results, " in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().err.startswith("removed 2 results, ")
    assert list(cache.rglob("*.json")) == []
    assert main(["cache", "--clear"]) == 0


def test_without_cache_nothing_is_written(hosts: Path, cache: Path) -> None:
    assert main(["dumps", str(hosts), "--no-cache"]) == 0
    assert not cache.exists()


def test_what_cannot_be_read_is_told_last(hosts: Path, capsys: Capture) -> None:
    (hosts / "process-1" / "module_0003.jit_step.cpu_after_optimizations.txt").write_text("")
    (hosts / "process-2" / "module_0003.jit_step.before_optimizations.txt").write_text(STEP[:-30])
    assert main(["dumps", str(hosts)]) == 2
    out = capsys.readouterr().out
    assert "Not read: 2 files\n" in out
    assert out.count("ends in the middle of a module") == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_rights(hosts: Path, capsys: Capture) -> None:
    (hosts / "process-1").chmod(0)
    assert main(["dumps", str(hosts)]) == 2
    assert "Permission denied" in capsys.readouterr().out
    (hosts / "process-1").chmod(0o700)


def test_one_module(hosts: Path, capsys: Capture) -> None:
    step = [str(hosts), "--module", "jit_step"]
    assert main(["dumps", *step, "--passes"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("jit_step, module 3, on process-0: 5 dumps, 2 changed the program\n")
    assert re.search(r"^0001  algsimp +simplification +8 \(-1\)", out, re.M)
    assert "* 2 dumps leave the program as it was: --all shows them" in out
    assert main(["dumps", *step, "--passes", "--all"]) == 0
    assert re.search(r" text +8 ", capsys.readouterr().out)
    assert main(["dumps", *step, "--track", "%copy.1"]) == 0
    assert "removed  its users read %dot.1" in capsys.readouterr().out
    assert main(["dumps", *step, "--diff", "algsimp"]) == 1
    assert "- copy f32[8,8]" in capsys.readouterr().out
    assert main(["dumps", *step, "--show", "algsimp"]) == 0
    shown = capsys.readouterr().out
    (file,) = (hosts / "process-0").glob("module_0003.*.after_algsimp*.txt")
    assert shown == file.read_text()


def test_times_from_a_log(hosts: Path, tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "log"
    line = "I1127 15:43:57.1  11 hlo_pass_pipeline.cc:1] "
    log.write_text(
        f"{line}Running HLO pass pipeline on module jit_step: simplification\n"
        f"{line}  HLO pass algsimp\n{line}HLO pass: algsimp time: 26 us (26 us)\n"
    )
    arguments = [str(hosts), "--module", "jit_step", "--passes", "--log", str(log)]
    assert main(["dumps", *arguments]) == 0
    assert "26.0 us" in capsys.readouterr().out
    assert main(["dumps", *arguments, "--format", "json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [step["seconds"] for step in steps] == [None, None, 26e-6, None, None]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--passes"],
        ["--track", "%x"],
        ["--show", "algsimp"],
        ["--module", "jit_step", "--show", "nothing"],
        ["--module", "jit_stop"],
        ["--module", "jit_step", "--track", "%nothing"],
        ["--module", "jit_step", "--diff", "nothing"],
        ["--module", "jit_step", "--log", "missing"],
        ["--module", "jit_step", "--html", "x.html"],
        ["--pages", "1"],
        ["--host", "("],
        ["--group", "["],
    ],
)
def test_mistakes(arguments: list[str], hosts: Path, capsys: Capture) -> None:
    assert main(["dumps", str(hosts), *arguments]) == 2
    assert capsys.readouterr().err


def test_how_long_modules_wait_on_a_target(hosts: Path, capsys: Capture) -> None:
    assert main(["dumps", str(hosts), "--target", "h100_sxm"]) == 0
    assert re.search(r"exposed\b.*\n.*\n.*\d us\b", capsys.readouterr().out)
    assert main(["dumps", str(hosts), "--target", "h10_sxm"]) == 2
    assert "did you mean 'h100_sxm'" in capsys.readouterr().err


def test_no_dumps(tmp_path: Path, capsys: Capture) -> None:
    assert main(["dumps", str(tmp_path)]) == 2
    assert f"error[HLO006]: no dumps of XLA in {tmp_path}" in capsys.readouterr().err
    assert main(["dumps", str(tmp_path / "missing")]) == 2
