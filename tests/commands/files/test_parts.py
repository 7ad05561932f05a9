"""`--shard` and `hloopt merge`: parts put together are one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.dumps.dump_maker import END, OTHER_GROUPS, STEP, WITHOUT_COPY, changed_from, write_dump

from hloopt.cli import main
from hloopt.plain_data import from_plain, to_plain

Capture = pytest.CaptureFixture[str]
BROKEN = STEP.replace("copy(", "kopy(")
_MORE_THAN_FILES = 25
LINES = [
    "dumps {0} --no-cache",
    "dumps {0} --no-cache --format json --group rank",
    "stats {0}",
    "stats {0} --format json",
    "memory {0} --limit 100B",
    "cost {0} --latency",
    "schedule {0} --format json",
    "verify {0}",
    "verify {0} --format json",
    "fmt --check {0}",
    "fingerprint {0}",
    "fingerprint --same {0}",
    "lint {0}",
    "lint {0} --format sarif",
    "expect {0} instructions.count<=8 --format junit",
    "diff {0} {0}/rank-1",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    passes, end = changed_from(1, "{{0,1,2,3}}", OTHER_GROUPS)
    for rank in range(3):
        write_dump(tmp_path / "in" / f"rank-{rank}")
    write_dump(tmp_path / "in" / "rank-1", passes=passes, end=end)
    write_dump(tmp_path / "in" / "rank-2", id=5, name="jit_eval", begin=BROKEN, end=None)
    return tmp_path / "in"


def run(arguments: list[str], capsys: Capture) -> tuple[int, str, str]:
    exit_code = main(arguments)
    return exit_code, *capsys.readouterr()


def parts_of(
    line: list[str], count: int, capsys: Capture, tmp_path: Path, stem: str = "part"
) -> list[str]:
    paths = []
    for number in range(count):
        exit_code, out, _ = run([*line, "--shard", f"{number}/{count}"], capsys)
        assert exit_code == 0
        path = tmp_path / f"{stem}{number}.json"
        path.write_text(out, encoding="utf-8")
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("line", LINES)
def test_parts_put_together_are_one_run(
    line: str, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    arguments = line.format(folder).split()
    whole = run(arguments, capsys)
    assert whole[1] or whole[2]
    for count in (1, 3, _MORE_THAN_FILES):
        parts = parts_of(arguments, count, capsys, tmp_path)
        assert run(["merge", *reversed(parts)], capsys) == whole
    assert run(["merge", *parts], capsys) == whole


def test_some_parts_are_of_no_file(folder: Path) -> None:
    assert sum(path.is_file() for path in folder.rglob("*")) < _MORE_THAN_FILES


def test_processes_do_not_matter(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["stats", str(folder)]
    whole = run(arguments, capsys)
    parts = parts_of([*arguments, "-j", "2"], 2, capsys, tmp_path)
    assert run(["merge", *parts], capsys) == whole


def test_a_baseline_is_written_once_all_is_known(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    (folder / "rank-2" / "module_0005.jit_eval.before_optimizations.txt").unlink()
    for path in folder.rglob("*jit_eval*"):
        path.unlink()
    base = tmp_path / "base.json"
    arguments = ["lint", str(folder), "--write-baseline", str(base)]
    assert main(arguments) == 0
    whole = base.read_text()
    base.unlink()
    parts = parts_of(arguments, 3, capsys, tmp_path)
    assert not base.exists()
    assert main(["merge", *parts]) == 0
    assert base.read_text() == whole


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([0, 2], "missing of 3 parts: 1"),
        ([0, 1, 1, 2], "are both part 1 of 3"),
        ([0, 1, 4], "is part 1/2, "),
        ([0, 1, 5], "is of another run than"),
        ([0, 1, 6], "is of another run than"),
    ],
)
def test_missing_doubled_and_mixed_parts(
    chosen: list[int], message: str, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    stats = ["stats", str(folder)]
    parts = parts_of(stats, 3, capsys, tmp_path)
    parts += parts_of(stats, 2, capsys, tmp_path, "two")
    parts += parts_of([*stats, "--top", "3"], 3, capsys, tmp_path, "options")[2:]
    parts += parts_of(["memory", str(folder)], 3, capsys, tmp_path, "command")[2:]
    exit_code, out, err = run(["merge", *(parts[number] for number in chosen)], capsys)
    assert (exit_code, out) == (2, "")
    assert "error[HLO017]: " in err
    assert message in err


def test_other_files_than_those_of_the_parts(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    for line in (["stats", str(folder)], ["dumps", str(folder), "--no-cache"]):
        parts = parts_of(line, 2, capsys, tmp_path)
        more = folder / "rank-1" / "module_0009.jit_x.before_optimizations.txt"
        more.write_text(STEP, encoding="utf-8")
        exit_code, out, err = run(["merge", *parts], capsys)
        assert (exit_code, out) == (2, "")
        assert "other files than those that the parts are of" in err
        more.unlink()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hloopt_part": 2}', "HloModule m", "\x00"])
def test_what_is_no_part(text: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "part").write_text(text)
    exit_code, _, err = run(["merge", str(tmp_path / "part")], capsys)
    assert exit_code == 2
    assert "is no part of a run" in err
    assert main(["merge", str(tmp_path / "missing")]) == 2


@pytest.mark.parametrize("command", ["stats", "dumps --no-cache"])
def test_a_damaged_part(command: str, folder: Path, tmp_path: Path, capsys: Capture) -> None:
    (path,) = parts_of([*command.split(), str(folder)], 1, capsys, tmp_path)
    part: dict[str, Any] = json.loads(Path(path).read_text())
    part["results"] = {key: {} for key in part["results"]}
    Path(path).write_text(json.dumps(part))
    exit_code, _, err = run(["merge", path], capsys)
    assert exit_code == 2
    assert "error[HLO017]: a part is damaged" in err
    Path(path).write_text(json.dumps({**part, "shard": 5}))
    assert run(["merge", path], capsys)[0] == 2


@pytest.mark.parametrize("shard", ["3/3", "x", "1", "/", "1/0", "-1/3", "1/3/2"])
def test_mistakes_in_a_shard(shard: str, folder: Path, capsys: Capture) -> None:
    assert run(["stats", str(folder), "--shard", shard], capsys)[0] == 2
    assert run(["dumps", str(folder), "--module", "3", "--shard", "0/2"], capsys)[0] == 2


def test_plain_data_is_what_it_was() -> None:
    from hloopt.checks.results import Check, CheckedModule, Location, Severity, Verdict, Violation

    place = Location("a.hlo", 3, None, instruction="x")
    violation = Violation("HLL1", Severity.NOTE, "m", place, related=(place, place))
    module = CheckedModule("a.hlo", "m", (Check("c", "t", Verdict.FAILED, (violation,)),))
    assert from_plain(CheckedModule, json.loads(json.dumps(to_plain(module)))) == module
    assert from_plain(tuple[int, str | None], [3, None]) == (3, None)
    assert from_plain(dict[str, list[tuple[int, ...]]], {"a": [[1, 2], []]}) == {"a": [(1, 2), ()]}
    with pytest.raises(ValueError, match="a tuple of 2, found one of 1"):
        from_plain(tuple[int, int], [1])


def test_texts_of_the_maker_are_hlo() -> None:
    from hloopt.diagnostics import Source
    from hloopt.text import parse_module
    from hloopt.verifier import verify_module

    for text in (STEP, WITHOUT_COPY, END):
        assert verify_module(parse_module(Source("m", text))) == []
