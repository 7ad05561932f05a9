"""At each stage of compilation a report is right, or says why it gives no verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.jax_dumps.dumps import STAGES, Dumps

from hloopt.cli import main

pytestmark = pytest.mark.oracle

FINAL = ("after_scheduling", "after_optimizations")
EARLY = tuple(stage for stage in STAGES if stage not in FINAL)
UNFUSED = EARLY[: EARLY.index("before_copies")]

_STYLED = re.compile(r"\x1b\[([\d;]*)m([^\x1b]*)")
_PERCENTAGE = re.compile(r"\d%")


@pytest.fixture(params=["rnn", "transformer", "moe"])
def dumps(request: pytest.FixtureRequest, dumps_of: Callable[[str], Dumps]) -> Dumps:
    return dumps_of(request.param)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints in colour, on one line."""

    def run(*command: str | Path, code: int | tuple[int, ...] = 0) -> str:
        found = main([*map(str, command), "--color", "always"])
        printed = capsys.readouterr()
        assert found in (code if isinstance(code, tuple) else (code,)), printed.err
        return printed.out + printed.err

    return run


def joined(text: str) -> str:
    """Without colours, on one line."""
    return " ".join(_STYLED.sub(r"\2", text).split())


def green_words(text: str) -> Iterator[str]:
    """Words in the colour of success; curves and their legend have colours too."""
    for codes, styled in _STYLED.findall(text):
        if {"32", "92"} & set(codes.split(";")) and re.search(r"\w", styled):
            yield styled


def assert_no_verdict(text: str) -> None:
    assert list(green_words(text)) == []
    figures, *doubts = re.split(r"^(?:\x1b\[2m)?\* ", text, flags=re.MULTILINE)
    assert not _PERCENTAGE.search(figures)
    assert all(
        re.match(r"(?:< )?[\d.]+% of the time is guessed", doubt)
        for doubt in filter(_PERCENTAGE.search, doubts)
    )
    assert not re.search(r"\bfits\b|\bleft\b|RESOURCE_EXHAUSTED", text)


@pytest.mark.parametrize("stage", EARLY)
def test_memory_gives_no_verdict_before_it_is_what_runs(
    dumps: Dumps, stage: str, run: Callable[..., str]
) -> None:
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    for limit in (("--limit", "1GiB"), ("--target", "h100_sxm"), ("--limit", "1KiB")):
        out = run("memory", dumps.stages[stage], *limit, code=2)
        assert_no_verdict(out)
        reason = joined(out).partition("no verdict against")[2]
        assert "the module is not scheduled" in reason
        assert ("is not partitioned" in reason) is not dumps.is_partitioned(stage)
        is_measured = "copies are not inserted" in reason or "not flattened" in reason
        assert is_measured is (stage not in COPIED)


COPIED = ("inside_copies", "after_copies", *FINAL)


@pytest.mark.parametrize("command", ["cost", "cost --latency", "schedule", "analyze overlap"])
@pytest.mark.parametrize("stage", EARLY)
def test_times_are_of_what_runs_or_called_otherwise(
    dumps: Dumps, stage: str, command: str, run: Callable[..., str]
) -> None:
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    out = run(*command.split(), dumps.stages[stage], "--target", "h100_sxm")
    said = joined(out)
    assert ("note: not partitioned: figures are of the whole program over 8 devices" in said) is (
        not dumps.is_partitioned(stage)
    )
    assert ("note: not fused (" in said) is (stage in UNFUSED)
    if "note: " in said or "cost" not in command:
        assert_no_verdict(out)


@pytest.mark.parametrize("command", ["memory", "schedule --target h100_sxm"])
def test_the_last_stages_get_a_verdict(dumps: Dumps, command: str, run: Callable[..., str]) -> None:
    for stage in FINAL:
        out = joined(run(*command.split(), dumps.stages[stage]))
        assert "note: " not in out
        assert "not scheduled" not in out
        assert _PERCENTAGE.search(out)


@pytest.mark.parametrize("command", ["analyze replication", "analyze loops", "analyze overlap"])
def test_what_is_not_partitioned_has_nothing_of_devices(
    dumps: Dumps, command: str, run: Callable[..., str]
) -> None:
    for stage, path in dumps.stages.items():
        out = run(*command.split(), path)
        if not dumps.is_partitioned(stage):
            assert_no_verdict(out)
            assert "not partitioned" in joined(out)
            assert "same on all" not in out
            assert "no collectives between" not in out
        elif command == "analyze overlap" and dumps.program == "rnn":
            assert "no collectives between devices" in out


@pytest.mark.parametrize("stage", EARLY)
def test_a_stage_is_not_measured_against_the_last(
    dumps: Dumps, stage: str, run: Callable[..., str]
) -> None:
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    pair = (dumps.stages[stage], dumps.stages["after_optimizations"])
    out = joined(run("diff", *pair, "--memory", code=1))
    assert not _PERCENTAGE.search(out)
    assert "memory is not compared" in out or "sizes only, no verdict" in out
    assert ("is not partitioned" in out) is not dumps.is_partitioned(stage)


@pytest.mark.parametrize("stage", STAGES)
def test_a_pass_is_not_praised_for_copies_that_xla_puts_back(
    dumps: Dumps, stage: str, run: Callable[..., str], tmp_path: Path
) -> None:
    """`cse` takes copies out of loops that need them."""
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    out = run("opt", dumps.stages[stage], "-p", "simplify", "-o", tmp_path / "o.hlo")
    lines = out.splitlines()
    table = [n for n, line in enumerate(lines) if re.match("memory .* change", joined(line))]
    assert table or stage in EARLY or dumps.program == "moe"  # which has no loops
    if table:
        change = "\n".join(lines[table[0] :])
        assert not _PERCENTAGE.search(change)
        assert list(green_words(change)) == []
        assert "sizes only, no verdict" in joined(change)


@pytest.mark.parametrize("stage", EARLY)
def test_json_has_no_verdict_either(
    dumps: Dumps, stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    path = str(dumps.stages[stage])
    assert main(["memory", path, "--limit", "1GiB", "--format", "json"]) == 2
    (report,) = json.loads(capsys.readouterr().out)
    assert report["fit"] is None
    assert report["no_verdict"]
    found: dict[str, Any] = report["stage"]
    assert found["partitioned"]["value"] is dumps.is_partitioned(stage)
    assert found["scheduled"]["value"] is False
