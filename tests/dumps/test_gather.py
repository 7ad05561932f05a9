"""Facts of files: read once, remembered, and problems told."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from tests.dumps.dump_maker import COMBINED, END, STEP, WITHOUT_COPY

from hloopt.dumps import gather
from hloopt.dumps.facts import Depth, Facts
from hloopt.dumps.gather import Gatherer, examine
from hloopt.files.cache import Cache
from hloopt.files.storage import digest_of
from hloopt.plain_data import from_plain, to_plain


def write(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return [str(folder / f"{name}.txt") for name in texts]


@pytest.mark.parametrize("jobs", [1, 2])
def test_facts(jobs: int, tmp_path: Path) -> None:
    before, after = write(tmp_path, before=STEP, after=END)
    found = Gatherer(jobs, None).facts([before, after], Depth.FULL)
    facts = found.of(before, Depth.FULL)
    assert facts is not None
    assert (facts.module, facts.instructions, facts.computations) == ("jit_step", 9, 2)
    assert facts.devices == (1, 4)
    assert facts.collectives == {"all-reduce": (1, 256)}
    assert facts.flops == 2 * 8**3 + 64 + 64
    assert facts.parameters == ("f32[8,8]{1,0}", "f32[8,8]{1,0}")
    assert (facts.peak, facts.peak_doubt) == (None, "the module is not scheduled")
    assert facts.sequence is None
    scheduled = found.of(after, Depth.FULL)
    assert scheduled is not None
    assert scheduled.peak == 3 * 256 + 256  # two arguments, the result, and a temporary
    assert scheduled.sequence == ("all-reduce f32[8,8]{1,0} groups {{0,1,2,3}} channel 1",)
    assert from_plain(Facts, json.loads(json.dumps(to_plain(scheduled)))) == scheduled


def test_times_are_of_a_target(tmp_path: Path) -> None:
    paths = write(tmp_path, before=STEP, after=END)
    cache = Cache(tmp_path / "cache")
    exposed: dict[str | None, float | None] = {}
    doubts = []
    for target in (None, "h100_sxm", "b200", "h100_sxm"):
        found = Gatherer(1, cache, target=target).facts(paths, Depth.FULL)
        facts = [found.of(path, Depth.FULL) for path in paths]
        assert facts[0] is not None
        assert facts[1] is not None
        assert facts[0].exposed is None
        doubts.append(facts[0].exposed_doubt)
        assert exposed.setdefault(target, facts[1].exposed) == facts[1].exposed
    assert doubts == ["no target is named", *["the module is not scheduled"] * 3]
    assert exposed[None] is None
    assert exposed["h100_sxm"]
    assert exposed["b200"]
    assert exposed["h100_sxm"] != exposed["b200"]


def test_names_do_not_make_another_fingerprint(tmp_path: Path) -> None:
    paths = write(tmp_path, a=WITHOUT_COPY, b=COMBINED, c=STEP)
    found = Gatherer(1, None).facts(paths, Depth.PRINT)
    prints = [facts.fingerprint for path in paths if (facts := found.of(path, Depth.PRINT))]
    assert prints[0] == prints[1] != prints[2]


def test_equal_files_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    def watched(path: str, depth: Depth, target: str | None) -> object:
        looked_at.append(path)
        return examine(path, depth, target)

    monkeypatch.setattr(gather, "examine", watched)
    paths = write(tmp_path, a=STEP, b=STEP, c=END)
    gatherer = Gatherer(1, None)
    gatherer.facts(paths, Depth.STEP)
    assert looked_at == [paths[0], paths[2]]
    gatherer.facts(paths, Depth.PRINT)
    assert len(looked_at) == 2
    gatherer.facts(paths, Depth.FULL)
    assert len(looked_at) == 4


def test_what_cannot_be_read_is_a_problem_and_the_rest_is_done(tmp_path: Path) -> None:
    paths = write(tmp_path, good=STEP, bad=STEP.replace("copy(", "kopy("), empty="")
    paths += write(tmp_path, cut=STEP[:-40], begin="HloMod", headless=STEP.partition("ENTRY")[0])
    paths += [str(tmp_path / "gone.txt"), str(tmp_path)]
    (tmp_path / "data.txt").write_bytes(b"\xff\xfe\x00")
    paths.append(str(tmp_path / "data.txt"))
    for jobs in (1, 2):
        found = Gatherer(jobs, None).facts(paths, Depth.PRINT)
        assert [os.path.basename(p) for p in paths if found.of(p, Depth.PRINT)] == ["good.txt"]
        told = {os.path.basename(p): why for p, why in found.problems.items() if p != str(tmp_path)}
        assert {name for name, why in told.items() if why.is_incomplete} == {
            *("empty.txt", "cut.txt", "begin.txt", "headless.txt")
        }
        assert told["bad.txt"].line == 14
        assert "No such file" in told["gone.txt"].message
        assert "UTF-8" in told["data.txt"].message or "UTF-16" in told["data.txt"].message


def test_a_huge_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "LARGEST", len(END) - 1)
    paths = write(tmp_path, a=WITHOUT_COPY, b=END)
    (problem,) = Gatherer(1, None).facts(paths, Depth.PRINT).problems.values()
    assert problem.message.startswith(f"{paths[1]} has ")
    assert "are looked at" in problem.message


def test_a_twin_of_a_broken_file_is_broken(tmp_path: Path) -> None:
    paths = write(tmp_path, a=STEP[:-40], b=STEP[:-40])
    assert set(Gatherer(1, None).facts(paths, Depth.PRINT).problems) == set(paths)


def test_a_file_that_is_being_written_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = write(tmp_path, a=STEP[:-40])

    def write_on(seconds: float) -> None:
        write(tmp_path, a=STEP)

    monkeypatch.setattr(time, "sleep", write_on)
    found = Gatherer(1, None).facts([path], Depth.PRINT)
    assert found.problems == {}
    assert found.of(path, Depth.PRINT) is not None


def test_a_file_that_keeps_growing_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = write(tmp_path, a=STEP)
    whole = digest_of

    def growing(path: str) -> tuple[str, int]:
        found = whole(path)
        with open(path, "a") as file:
            file.write("\n")
        return found

    monkeypatch.setattr(gather, "digest_of", growing)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    (problem,) = Gatherer(1, Cache(tmp_path / "cache")).facts([path], Depth.PRINT).problems.values()
    assert problem.is_incomplete
    assert not (tmp_path / "cache").exists()


def test_a_worker_that_is_killed_loses_its_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(path: str, depth: Depth, target: str | None) -> object:
        if path.endswith("b.txt"):
            os.kill(os.getpid(), 9)
        return examine(path, depth, target)

    monkeypatch.setattr(gather, "examine", dying)
    paths = write(tmp_path, a=STEP, b=END, c=WITHOUT_COPY)
    found = Gatherer(2, None).facts(paths, Depth.PRINT)
    assert list(found.problems) == [paths[1]]
    assert [bool(found.of(path, Depth.PRINT)) for path in paths] == [True, False, True]


# -- cache ----------------------------------------------------------------------------------------


def test_the_cache_has_the_facts_of_equal_bytes(tmp_path: Path) -> None:
    paths = write(tmp_path, a=STEP, b=END)
    cache = Cache(tmp_path / "cache")
    first = Gatherer(1, cache).facts(paths, Depth.FULL)
    assert first.from_cache == 0
    again = Gatherer(1, Cache(tmp_path / "cache")).facts(paths, Depth.FULL)
    assert again.from_cache == 2
    assert again.facts == first.facts
    (path,) = write(tmp_path, a=WITHOUT_COPY)
    changed = Gatherer(1, cache).facts([path], Depth.FULL)
    assert changed.from_cache == 0
    assert changed.of(path, Depth.FULL) != first.of(path, Depth.FULL)


def test_problems_are_never_in_the_cache(tmp_path: Path) -> None:
    (path,) = write(tmp_path, a=STEP[:-40])
    cache = Cache(tmp_path / "cache")
    Gatherer(1, cache).facts([path], Depth.FULL)
    assert cache.size() == (0, 0)


@pytest.mark.parametrize("damage", ["", "{", '{"module": 3}', "[]", "null"])
def test_a_damaged_entry_is_none(damage: str, tmp_path: Path) -> None:
    (path,) = write(tmp_path, a=STEP)
    cache = Cache(tmp_path / "cache")
    first = Gatherer(1, cache).facts([path], Depth.FULL)
    (entry,) = (tmp_path / "cache").rglob("*.json")
    entry.write_text(damage)
    again = Gatherer(1, cache).facts([path], Depth.FULL)
    assert (again.from_cache, again.facts) == (0, first.facts)
    assert json.loads(entry.read_text())["module"] == "jit_step"


def test_a_cache_that_cannot_be_written_is_empty(tmp_path: Path) -> None:
    (path,) = write(tmp_path, a=STEP)
    (tmp_path / "cache").write_text("a file")
    found = Gatherer(1, Cache(tmp_path / "cache")).facts([path], Depth.FULL)
    assert found.of(path, Depth.FULL) is not None


def test_the_cache_keeps_within_its_bound(tmp_path: Path) -> None:
    cache = Cache(tmp_path, most_bytes=1000)
    for number in range(50):
        cache.put(f"key {number}", "x" * 98)
        os.utime(cache._path(f"key {number}"), (number, number))
        cache.get("key 0")  # used: never the oldest
        entries, size = cache.size()
        assert size == 100 * entries <= 1000
    assert entries >= 5
    assert [cache.get(f"key {number}") for number in (0, 1, 49)] == ["x" * 98, None, "x" * 98]
    cache.clear()
    assert cache.size() == (0, 0)
    cache.clear()


def test_a_dump_within_a_compilation_may_break_a_rule(tmp_path: Path) -> None:
    broken = STEP.replace("parameter(1), ", "parameter(1), sharding={devices=[8,1]<=[8]}, ")
    (path,) = write(tmp_path, a=broken)
    found = Gatherer(1, None).facts([path], Depth.FULL)
    facts = found.of(path, Depth.FULL)
    assert facts is not None
    assert "should have 4 devices but has 8" in facts.broken_rule
    assert facts.peak_doubt == facts.flops_doubt == facts.broken_rule
    assert (facts.instructions, facts.flops, facts.collectives) == (9, None, None)
