"""`hloopt sharding what-if`: the table, JSON and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sharding.fake_partitioner import install
from tests.sharding.sharding_pairs import paths_of

from hloopt.cli import main
from hloopt.compilers import partitioning
from hloopt.compilers.failures import CompilerFailure
from hloopt.ir import Module

Capture = pytest.CaptureFixture[str]
BEFORE, AFTER = paths_of("gathered")
DROP = ["sharding", "what-if", BEFORE, "--drop", "%w"]


def test_figures_before_and_after_are_in_one_table(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    given = install(monkeypatch)
    assert main([*DROP, "--set", "%x={replicated}", "--target", "h100_sxm"]) == 0
    out = capsys.readouterr().out
    assert "gathered on 4 partitions, partitioned again" in out
    assert "  %x: {devices=[2,1,2]<=[4] last_tile_dim_replicate} → {replicated}\n" in out
    assert "  %w: {devices=[2,2]<=[4]} dropped\n" in out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "before after change" in lines
    assert "collectives 1 1 -" in lines
    assert "all-gather 1 0 -100.0%" in lines
    assert "all-reduce 0 1 new" in lines
    assert "sent in a run 512 B 1.5 KiB +200.0%" in lines
    assert any(line.startswith("peak memory 1.8 KiB") for line in lines)
    assert any(line.startswith("exposed ") and " us " in line for line in lines)
    assert "* times by speed of light on NVIDIA H100 SXM, 80 GB" in lines
    assert [("sharding" in program["w"].attributes) for program in given] == [True, False]


def test_loops_count_as_often_as_they_run(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    install(monkeypatch, Path(paths_of("looped")[1]).read_text(encoding="utf-8"))
    assert main(DROP) == 0
    out = capsys.readouterr().out
    assert "1 (5 runs)" in out
    assert "the partitioner makes the same collectives" in out
    assert " cycles" in out


def test_json_has_both_sides(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    install(monkeypatch)
    assert main([*DROP, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["changes"] == [{"name": "w", "before": "{devices=[2,2]<=[4]}", "after": None}]
    assert report["before"]["collectives"] == {"all-gather": {"count": 1, "runs": 1, "bytes": 512}}
    assert report["after"]["collectives"] == {"all-reduce": {"count": 1, "runs": 1, "bytes": 1536}}
    assert (report["before"]["count"], report["after"]["bytes"]) == (1, 1536)
    assert report["unit"] == "cycles"
    assert any(note.startswith("before: ") for note in report["notes"]) == any(
        note.startswith("after: ") for note in report["notes"]
    )


def test_many_changes_are_cut_in_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    install(monkeypatch)
    lines = [f"  n{n} = f32[8] negate(p), sharding={{replicated}}" for n in range(15)]
    text = "\n".join(["HloModule m, num_partitions=4", "ENTRY e {", "  p = f32[8] parameter(0)"])
    (tmp_path / "m.hlo").write_text("\n".join([text, *lines, "  ROOT r = f32[8] sine(p)\n}\n"]))
    drop = ["--drop", "opcode=negate"]
    assert main(["sharding", "what-if", str(tmp_path / "m.hlo"), *drop]) == 0
    assert "  … and 3 more\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([BEFORE], "nothing is changed: give --set or --drop"),
        ([BEFORE, "--drop", "%nothing"], "'%nothing' selects no instruction in gathered"),
        ([BEFORE, "--set", "%w"], "'%w' sets no sharding"),
        ([BEFORE, "--drop", "%w", "--target", "nothing"], "nothing"),
        ([AFTER, "--drop", "%param"], "gathered is partitioned already"),
    ],
)
def test_mistakes_have_one_message(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    given = install(monkeypatch)
    assert main(["sharding", "what-if", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.lower().count("error") == 1
    assert given == []


def test_a_program_that_xla_refuses_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def refuse(program: Module, folder: Path) -> Module:
        raise CompilerFailure("XLA refuses the program: why")

    monkeypatch.setattr(partitioning, "partition", refuse)
    assert main(DROP) != 0
    assert "XLA refuses the program: why" in capsys.readouterr().err
