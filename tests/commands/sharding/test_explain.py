"""`hloopt sharding explain`: files, folders of dumps, logs, meshes and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import paths_of

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]
STAGES = {
    "before": "module_0001.jit_f.0003.spmd-partitioner.after_shardy-xla.before_spmd-partitioning",
    "after": "module_0001.jit_f.0004.spmd-partitioner.after_spmd-partitioning.before_call-inliner",
}
LOG = (
    "W1 [SPMD] Involuntary full rematerialization. The compiler cannot go from sharding "
    "{devices=[2,1,4]<=[4,2]T(1,0)} to {devices=[1,8,1]<=[8]} efficiently for HLO operation "
    '%y.1 = f32[8,16,4]{2,1,0} add(%p, %p), metadata={op_name="jit(f)/add"}. As the last resort'
)


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    for path, stage in zip(paths_of("gathered"), STAGES.values(), strict=True):
        shutil.copy(path, tmp_path / f"{stage}.txt")
    return tmp_path


def test_a_collective_is_below_its_line_with_its_reason(capsys: Capture) -> None:
    assert main(["sharding", "explain", *paths_of("gathered"), "--mesh", "dp=2,tp=2"]) == 0
    out = capsys.readouterr().out
    assert "gathered on 4 partitions: 1 collective, 512 B sent by a device in a run" in out
    assert "mesh dp=2, tp=2" in out
    assert "explained: 1 clear" in out
    assert "f.py:7: 1 all-gather" in out
    assert "all-gather f32[16,16] over dp %all-gather" in out
    assert "%d dot: operand reshard of %w" in out
    assert "[{dp}, {tp}] → [{}, {tp}]" in out
    assert "avoided by %x cut along the same axes" in out
    assert "jit(f)/dot" in out


def test_runs_count(capsys: Capture) -> None:
    assert main(["sharding", "explain", *paths_of("looped")]) == 0
    out = capsys.readouterr().out
    assert "960 B    x5  all-gather" in out
    assert "--mesh dp=2,tp=4 names its axes" in out


def test_rows_left_out_are_counted(capsys: Capture) -> None:
    assert main(["sharding", "explain", *paths_of("remat"), "--top", "1"]) == 0
    out = capsys.readouterr().out
    assert "… and 1 more" in out
    assert "full rematerialization: whole on each device, then cut" in out


def test_texts_that_do_not_belong_together_are_refused_in_one_message(capsys: Capture) -> None:
    before, _ = paths_of("halo")
    assert main(["sharding", "explain", before, before]) == 2
    err = capsys.readouterr().err
    assert "these texts do not belong together: parameter 0 is f32[16] in the second one" in err
    assert "--xla_dump_hlo_pass_re=spmd-partitioning" in err


def test_a_mesh_of_other_devices_is_refused(capsys: Capture) -> None:
    assert main(["sharding", "explain", *paths_of("halo"), "--mesh", "dp=2"]) == 2
    assert "the mesh dp=2 has 2 devices, the program is for 4" in capsys.readouterr().err


def test_json_has_everything(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "log").write_text(f"{LOG}\n")
    arguments = ["--format", "json", "--log", str(tmp_path / "log")]
    assert main(["sharding", "explain", *paths_of("remat"), *arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["confidence"] == {"exact": 0, "clear": 2, "ambiguous": 0}
    assert report["bytes"] == 14336
    (line,) = report["lines"]
    assert line == {"source": "(no source)", "collectives": {"all-gather": 2}, "bytes": 14336}
    first = report["collectives"][0]
    assert first["name"] == "all-gather.1"
    assert first["made_by"]["name"] == "y"
    assert first["full_rematerialization"] is True
    assert first["warning"] == {
        "from": "{devices=[2,1,4]<=[4,2]T(1,0)}",
        "to": "{devices=[1,8,1]<=[8]}",
        "name": "y.1",
    }


def test_a_folder_of_dumps_and_a_module_are_both_sides(dumps: Path, capsys: Capture) -> None:
    assert main(["sharding", "explain", str(dumps), "jit_f"]) == 0
    assert "%d dot: operand reshard of %w" in capsys.readouterr().out


def test_the_dump_before_all_passes_names_the_axes(dumps: Path, capsys: Capture) -> None:
    text = """HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes="{mesh = \
#sdy.mesh<[\\"a\\"=2, \\"b\\"=2]>}"}
ENTRY e { ROOT x = f32[] parameter(0) }
"""
    (dumps / "module_0001.jit_f.before_optimizations.txt").write_text(text)
    assert main(["sharding", "explain", str(dumps), "jit_f"]) == 0
    assert "mesh a=2, b=2" in capsys.readouterr().out


@pytest.mark.parametrize("side", STAGES)
def test_a_dump_that_is_missing_is_named(side: str, dumps: Path, capsys: Capture) -> None:
    (dumps / f"{STAGES[side]}.txt").unlink()
    assert main(["sharding", "explain", str(dumps), "jit_f"]) == 2
    err = capsys.readouterr().err
    assert f"has no dump of jit_f {side} spmd-partitioning" in err
    assert "--xla_dump_hlo_pass_re=spmd-partitioning" in err


def test_ambiguous_origins_are_listed(capsys: Capture) -> None:
    assert main(["sharding", "explain", *paths_of("chained")]) == 0
    out = capsys.readouterr().out
    assert "or %padded: ambiguous" in out
    assert "ambiguous: the texts leave several instructions" in out
    assert main(["sharding", "explain", *paths_of("chained"), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["collectives"]
    assert {c["name"] for c in found[0]["candidates"]} == {"cut", "padded"}
