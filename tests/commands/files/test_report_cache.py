"""Reports on several files are kept, and count as long as all that they rest on is the same."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.dumps.dump_maker import STEP, WITHOUT_COPY

from hloopt.cli import main
from hloopt.commands.shared import report_cache
from hloopt.files.cache import Cache
from hloopt.read_log import note_read, noting_reads

Capture = pytest.CaptureFixture[str]
Run = Callable[[str], tuple[int, str, str]]

LINES = [
    *("memory in", "memory in --format json", "memory in --limit 100B", "memory in --by source"),
    *("stats in", "verify in", "verify in --format json", "fmt --check in", "diff in out"),
    *("cost in --target ours.yaml", "cost in --latency --profile times.pbtxt", "schedule in"),
    *("schedule in --target ours.yaml", "schedule in --profile times.pbtxt", "fingerprint in"),
    *("fingerprint --same in", "lint in --config ours.toml", "lint in --target h100_sxm"),
    *("expect in instructions.count<=8", "expect in --expectations wanted.yaml"),
]
SCHEDULED = STEP.replace("num_partitions=4", "is_scheduled=true, num_partitions=4")
INVALID = STEP.replace("ROOT %add.1 = f32[8,8]", "ROOT %add.1 = f32[8,9]")
BROKEN = STEP.replace("copy(", "kopy(")
FILES = {
    "in/a.hlo": SCHEDULED,
    "in/b.txt": WITHOUT_COPY,
    "in/c.hlo": STEP.replace("f32[8,8]", "f32[4,4]"),
    "out/a.hlo": STEP,
    "out/b.txt": WITHOUT_COPY.replace("add(%x", "multiply(%x"),
    "out/c.hlo": STEP,
    "times.pbtxt": 'costs { name: "dot.1" cost_us: 10 }\n',
    "ours.toml": '[lint]\nselect = ["HLL"]\ntarget = "ours.yaml"\n',
    "wanted.yaml": "- instructions.count <= 8\n",
}
CHANGES = {
    "in/a.hlo": SCHEDULED.replace("f32[8,8]", "f32[16,16]"),
    "in/b.txt": WITHOUT_COPY.replace("add(%all", "multiply(%all"),
    "in/c.hlo": INVALID,
    "out/a.hlo": STEP.replace("add(%all", "multiply(%all"),
    "times.pbtxt": 'costs { name: "dot.1" cost_us: 7000 }\n',
    "ours.toml": '[lint]\nselect = ["HLL1"]\ntarget = "ours.yaml"\n',
    "wanted.yaml": "- instructions.count <= 7\n",
    "in/d.hlo": STEP,
}


@pytest.fixture(autouse=True)
def _folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HLOOPT_NO_CACHE")
    monkeypatch.setenv("HLOOPT_CACHE_DIR", str(tmp_path / "cache"))
    for name, text in FILES.items():
        write(name, text)
    write("ours.yaml", (root / "src/hloopt/targets/h100_sxm.yaml").read_text(encoding="utf-8"))


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


@pytest.fixture
def run(capsys: Capture) -> Run:
    def run(line: str) -> tuple[int, str, str]:
        exit_code = main(line.split())
        return exit_code, *capsys.readouterr()

    return run


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is put into the cache."""
    found: list[Any] = []
    put = Cache.put

    def note(self: Cache, key: str, result: Any) -> None:
        found.append(result)
        put(self, key, result)

    monkeypatch.setattr(Cache, "put", note)
    return found


@pytest.mark.parametrize("line", LINES)
def test_a_second_run_works_on_nothing(line: str, run: Run, kept: list[Any]) -> None:
    first = run(line)
    assert len(kept) == 3
    assert run(line) == first == run(f"{line} --no-cache") == run(f"{line} -j 2")
    assert len(kept) == 3


@pytest.mark.parametrize("line", LINES)
def test_what_changed_is_worked_on_again(line: str, run: Run) -> None:
    results = [run(line)]
    for name, text in CHANGES.items():
        write(name, text)
        results.append(run(line))
        assert results[-1] == run(f"{line} --no-cache"), name
    target = Path("ours.yaml").read_text(encoding="utf-8")
    assert "second: 3352.32" in target
    write("ours.yaml", target.replace("second: 3352.32", "second: 3"))
    assert run(line) == run(f"{line} --no-cache")
    assert len({result[1] + result[2] for result in results}) > 1


@pytest.mark.parametrize(
    "line",
    [
        *("memory in/a.hlo", "memory in --no-cache", "memory in --html page.html"),
        *("cost in/a.hlo in/b.txt --target h100_sxm --html page.html", "fmt in"),
        *("schedule in --trace trace.json", "lint in --write-baseline base.json"),
        "expect in --write-baseline base.json",
    ],
)
def test_nothing_is_kept_of_one_file_or_of_what_writes_files(
    line: str, run: Run, kept: list[Any]
) -> None:
    run(line)
    run(line)
    assert kept == []


def test_the_variable_is_the_option(
    run: Run, kept: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLOOPT_NO_CACHE", "1")
    run("stats in")
    assert kept == []
    assert "env var: HLOOPT_NO_CACHE" in run("stats --help")[1]


@pytest.mark.parametrize(
    "line", ["memory in", "verify in", "fingerprint in", "fmt --check in", "lint --target b200 in"]
)
def test_what_cannot_be_read_is_not_kept(line: str, run: Run, kept: list[Any]) -> None:
    write("in/c.hlo", BROKEN)
    first = run(line)
    assert (first[0], len(kept)) == (2, 2)
    assert run(line) == first
    write("in/c.hlo", SCHEDULED)
    assert first != run(line) == run(f"{line} --no-cache")


def test_pages_of_another_width_are_others(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: dict[tuple[str, str], str] = {}
    for _ in range(2):
        for columns in ("80", "60"):
            monkeypatch.setenv("COLUMNS", columns)
            for color in ("never", "always"):
                page = run(f"memory in --color {color}")[1]
                assert pages.setdefault((columns, color), page) == page
    assert len(set(pages.values())) == 4


def test_an_entry_that_is_damaged_is_none(run: Run) -> None:
    first = run("stats in")
    entries = sorted(Path("cache").rglob("*.json"))
    assert len(entries) == 3
    damages = ("", "[]", '{"read": 3}', '{"read": {}, "result": [1]}', '{"read": {}}', "\udcff")
    for damage in (*damages, '{"read": {"/x\\u0000": "a"}, "result": []}', "[" * 100_000):
        for entry in entries:
            entry.write_bytes(damage.encode(errors="surrogateescape"))
        assert run("stats in") == first
        assert all("in/" in json.dumps(json.loads(entry.read_text())) for entry in entries)


def test_a_file_that_changed_between_two_readings_is_not_kept(
    kept: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(path: str) -> str:
        note_read(path, b"one")
        note_read(path, b"two" if path == "b" else b"one")
        return path

    for name in "abc":
        write(f"./{name}", "one")
    remembering = report_cache._Remembering("key", str, work, lambda text: text != "c")
    assert [remembering(path) for path in ("a", "b", "c")] == ["a", "b", "c"]
    assert [entry["result"] for entry in kept] == ["a"]


def test_work_that_reads_no_file_is_not_kept(kept: list[Any]) -> None:
    assert report_cache._Remembering("key", str, str.upper, bool)("a") == "A"
    assert kept == []


def test_a_log_within_another_has_its_own_files() -> None:
    with noting_reads() as outer:
        note_read("a", b"")
        with noting_reads() as inner:
            note_read("b", b"")
        note_read("c", b"")
        outer.close()
        note_read("d", b"")
    note_read("e", b"")
    assert (list(outer.digests), list(inner.digests)) == (["a", "c"], ["b"])


def test_many_processes_use_one_cache(run: Run) -> None:
    for number in range(40):
        write(f"in/{number}.hlo", STEP.replace("f32[8,8]", f"f32[{number + 1},{number + 1}]"))
    whole = run("stats in --no-cache")
    assert run("stats in -j 4") == whole
    for entry in list(Path("cache").rglob("*.json"))[::2]:
        os.unlink(entry)
    assert run("stats in -j 4") == whole


def test_what_standard_input_says_counts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for expected in ("<= 100", "<= 1", "<= 100"):
        text = f"- instructions.count {expected}\n".encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        results.append(run("expect in --expectations -")[0])
    assert results == [0, 1, 0]


def test_a_pair_is_known_by_its_files(run: Run, kept: list[Any]) -> None:
    for folder, text in (("old", STEP), ("new", WITHOUT_COPY)):
        write(f"{folder}/module_0005.jit_f.before_optimizations.txt", text)
        write(f"{folder}/module_0009.jit_g.before_optimizations.txt", STEP)
    first = run("diff old new")
    assert first[0] == 1
    write("old/module_0001.jit_f.before_optimizations.txt", WITHOUT_COPY)  # it takes the label
    assert run("diff old new") == run("diff old new --no-cache")
    assert run("diff old new") != first


def test_pipes_are_read_each_time(run: Run, kept: list[Any]) -> None:
    def through_pipe(text: str) -> tuple[int, str, str]:
        ends = os.pipe()
        os.write(ends[1], text.encode())
        os.close(ends[1])
        try:
            return run(f"stats in/a.hlo /dev/fd/{ends[0]}")
        finally:
            os.close(ends[0])

    first = through_pipe(STEP)
    assert first[0] == 0
    assert [list(entry["read"]) for entry in kept] == [["in/a.hlo"]]
    assert through_pipe(STEP)[0] == 0
    assert through_pipe(BROKEN)[0] == 2


def test_texts_are_kept_one_by_one(run: Run, kept: list[Any]) -> None:
    for name in "abcd":
        write(f"txt/{name}.txt", STEP)
    run("stats txt")
    assert len(kept) == 4
    write("txt/a.txt", WITHOUT_COPY)
    write("txt/e.txt", "no HLO")
    run("stats txt")
    assert [list(entry["read"]) for entry in kept[4:]] == [["txt/a.txt"]]


def test_a_folder_that_was_removed_is_no_trouble(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(f"stats {tmp_path}/in")[0] == 0
