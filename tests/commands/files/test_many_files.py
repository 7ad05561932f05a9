"""Commands on several files and folders: in processes, in order, whatever becomes of one file."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from pathlib import Path

import pytest
from tests.dumps.dump_maker import OTHER_GROUPS, STEP, WITHOUT_COPY, changed_from, write_dump

from hloopt.cli import main
from hloopt.commands.shared.each_file import FileReport, map_outcomes

Capture = pytest.CaptureFixture[str]

COMMANDS = [
    *("memory", "cost", "schedule", "stats", "verify", "fingerprint", "fmt --check", "lint"),
    "cost --latency --target h100_sxm",
    "expect instructions.count>=1",
]
BROKEN = STEP.replace("copy(", "kopy(")
END = "HloModule jit_step, is_scheduled=true\n\nENTRY %e {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(12):
        text = (STEP, WITHOUT_COPY, END)[number % 3]
        path = tmp_path / "in" / str(number % 2) / f"{number}.hlo"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "in"


def run(line: str, capsys: Capture) -> tuple[int, str, str]:
    exit_code = main(line.split())
    return exit_code, *capsys.readouterr()


def line_of(command: str, folder: Path, *options: str) -> str:
    name, *rest = command.split()
    return " ".join([name, str(folder), *rest, *options])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", ["text", "json"])
def test_several_processes_write_the_same(
    command: str, form: str, folder: Path, capsys: Capture
) -> None:
    (folder / "0" / "3.hlo").write_text(BROKEN, encoding="utf-8")
    options = [] if command.startswith("fmt") else ["--format", form]
    alone = run(line_of(command, folder, *options), capsys)
    assert alone == run(line_of(command, folder, *options, "-j", "3"), capsys)
    assert alone[0] == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_cannot_be_read_is_told_and_the_rest_is_done(
    command: str, folder: Path, capsys: Capture
) -> None:
    _, whole, _ = run(line_of(command, folder), capsys)
    (folder / "0" / "11.hlo").write_text(BROKEN, encoding="utf-8")
    (folder / "1" / "13.hlo.pb").write_bytes(b"")
    for jobs in ("1", "2"):
        exit_code, out, err = run(line_of(command, folder, "-j", jobs), capsys)
        assert exit_code == 2
        assert "error[HLO101]: unknown opcode 'kopy'" in err
        assert f"{folder / '0' / '11.hlo'}:14:" in err
        if command.split()[0] in ("memory", "cost", "schedule", "stats"):
            assert out == whole
        elif command == "fingerprint":
            assert out.count("h1-") == 12


def test_the_exit_code_is_the_worst(folder: Path, capsys: Capture) -> None:
    for jobs in ("1", "2"):
        line = line_of("memory --limit 100B", folder, "-j", jobs)
        assert run(line, capsys)[0] == 1
        (folder / "0" / "1.hlo").write_text(BROKEN, encoding="utf-8")
        assert run(line, capsys)[0] == 2
        (folder / "0" / "1.hlo").unlink()


def test_json_is_a_list_whatever_is_printed_when(folder: Path, capsys: Capture) -> None:
    exit_code, out, _ = run(line_of("stats --format json", folder, "-j", "2"), capsys)
    assert exit_code == 0
    found = json.loads(out)
    assert out == json.dumps(found, indent=2) + "\n"
    assert [os.path.basename(each["file"]) for each in found] == [
        f"{number}.hlo" for number in (0, 10, 2, 4, 6, 8, 1, 11, 3, 5, 7, 9)
    ]


def test_without_any_report_nothing_is_printed(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.hlo").write_text(BROKEN, encoding="utf-8")
    assert run(f"stats {tmp_path}/a.hlo --format json", capsys)[:2] == (2, "")


def test_keys_of_a_baseline_do_not_depend_on_processes(folder: Path, capsys: Capture) -> None:
    base = folder.parent / "base.json"
    for jobs in ("1", "3"):
        assert main(["expect", str(folder), "--write-baseline", str(base), "-j", jobs]) == 0
        keys = set(json.loads(base.read_text())["modules"])
        assert keys == {"jit_step", *(f"jit_step#{number}" for number in range(2, 13))}
        assert main(["expect", str(folder), "--baseline", str(base), "-j", jobs]) in (0, 2)
        assert main(["lint", str(folder), "--write-baseline", str(base), "-j", jobs]) == 0
        assert len(json.loads(base.read_text())["modules"]) == 12
    capsys.readouterr()


def test_fmt_writes_the_same_files(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    texts = []
    for jobs in ("1", "2"):
        for path in folder.rglob("*.hlo"):
            path.write_text(WITHOUT_COPY.replace("  %", "     %"), encoding="utf-8")
        assert main(["fmt", str(folder), "-j", jobs]) == 0
        texts.append({path.read_text(encoding="utf-8") for path in folder.rglob("*.hlo")})
    assert texts[0] == texts[1]
    assert len(texts[0]) == 1
    assert capsys.readouterr().err.count("12 files reformatted") == 2


def test_the_line_that_tells_what_is_at_work_is_no_message(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def look(path: str) -> FileReport:
        time.sleep(0.3)  # the spinner turns meanwhile
        print("a message", file=sys.stderr)
        return FileReport(None, None)

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    paths = [str(folder / "0" / "0.hlo"), str(folder / "0" / "2.hlo")]
    for outcome in map_outcomes(look, paths, 1, is_json=False, color="never"):
        assert outcome.errors == "a message\n"
    assert "2 of 2: " in terminal.getvalue()


# -- folders against folders ----------------------------------------------------------------------


def test_diff_of_dumps_pairs_modules_and_stages(tmp_path: Path, capsys: Capture) -> None:
    passes, end = changed_from(1, "{{0,1,2,3}}", OTHER_GROUPS)
    write_dump(tmp_path / "a", id=3)
    write_dump(tmp_path / "b", id=8, passes=passes, end=end)
    write_dump(tmp_path / "b", id=9)
    line = f"diff {tmp_path}/a {tmp_path}/b --no-memory"
    exit_code, out, err = run(line, capsys)
    assert exit_code == 1
    titles = [row for row in out.splitlines() if row.startswith("jit_step ")]
    assert titles == [
        "jit_step simplification.after_algsimp.before_dce",
        "jit_step collectives.after_all-reduce-combiner.before_dce",
        "jit_step cpu_after_optimizations",
    ]
    assert out.count("only in the second folder: ") == 5
    assert err == "10 pairs, 2 the same; 5 files without a partner\n"
    assert run(f"{line} -j 2", capsys) == (exit_code, out, err)
    found = json.loads(run(f"{line} --format json", capsys)[1])
    assert len(found) == 8
    assert found[0]["pair"] == titles[0]
    assert found[0]["before_file"].endswith("module_0003.jit_step.0001.simplification."
                                            "after_algsimp.before_dce.txt")  # fmt: skip
    assert found[-1]["before_file"] is None
    assert run(f"{line} --exit-zero", capsys)[0] == 0


def test_diff_of_folders_pairs_paths(tmp_path: Path, capsys: Capture) -> None:
    for folder, texts in (("a", (STEP, END, END)), ("b", (STEP, WITHOUT_COPY))):
        (tmp_path / folder / "x").mkdir(parents=True)
        for number, text in enumerate(texts):
            (tmp_path / folder / "x" / f"{number}.hlo").write_text(text, encoding="utf-8")
    exit_code, out, err = run(f"diff {tmp_path}/a {tmp_path}/b", capsys)
    assert exit_code == 1
    assert out.startswith("x/1.hlo\njit_step\n")
    assert f"only in the first folder: {tmp_path}/a/x/2.hlo" in out
    assert err == "3 pairs, 1 the same; 1 file without a partner\n"
    assert run(f"diff {tmp_path}/a {tmp_path}/a", capsys)[0] == 0
    assert run(f"diff {tmp_path}/a {tmp_path}/a --format json", capsys)[:2] == (0, "[]\n")
    assert run(f"diff {tmp_path}/a {tmp_path}/a/x/0.hlo", capsys)[0] == 2
    (tmp_path / "b" / "x" / "1.hlo").write_text(BROKEN, encoding="utf-8")
    assert run(f"diff {tmp_path}/a {tmp_path}/b", capsys)[0] == 2
