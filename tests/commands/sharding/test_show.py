"""`hloopt sharding show`: tables, pictures, JSON and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import paths_of

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]
MODULE = """HloModule m, num_partitions=4
ENTRY e {
  x = f32[1024,64] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate},
    metadata={op_name="params['x']"}
  w = f32[64] parameter(1), sharding={replicated}
  n = f32[1024,64] negate(x), sharding={devices=[2,2]<=[4]}
  ROOT t = (f32[1024,64], f32[64]) tuple(n, w)
}
"""


def shown(text: str, tmp_path: Path, capsys: Capture, *options: str) -> str:
    (tmp_path / "m.hlo").write_text(text)
    assert main(["sharding", "show", str(tmp_path / "m.hlo"), *options]) == 0
    return capsys.readouterr().out


def test_values_have_parts_bytes_copies_and_pictures(tmp_path: Path, capsys: Capture) -> None:
    out = shown(MODULE, tmp_path, capsys, "--mesh", "dp=2,tp=2")
    assert "m on 4 devices, mesh dp=2, tp=2" in out
    assert "parameters: 128.2 KiB on each device" in out
    assert "128.0 KiB      x2  %x f32[1024,64]" in out
    assert "f32[512,64] on each device" in out
    assert "[{dp}, {}]" in out
    assert "params['x']" in out
    assert " 64.0 KiB      x2  %x f32[1024,64] (parameter 0)" in out
    assert "[{dp}, {}]: devices of each part\n  of 1 value, as %x\n  dimension 0 down\n" in out
    assert "  │ 0-1 │\n  ├─────┤\n  │ 2-3 │\n" in out


def test_without_a_mesh_shardings_are_as_xla_prints_them(tmp_path: Path, capsys: Capture) -> None:
    out = shown(MODULE, tmp_path, capsys)
    assert "devices=[2,1,2]<=[4] last_tile_dim_replicate" in out
    assert "dimension 0 down, 1 across\n  ┌───┬───┐\n  │ 0 │ 1 │\n" in out


def test_rows_left_out_are_counted(tmp_path: Path, capsys: Capture) -> None:
    out = shown(MODULE, tmp_path, capsys, "--top", "1")
    assert "… and 1 more; --top shows them" in out


def test_json_has_all_values(tmp_path: Path, capsys: Capture) -> None:
    report = json.loads(shown(MODULE, tmp_path, capsys, "--format", "json"))
    assert (report["devices"], report["mesh"], report["redundant_bytes"]) == (4, None, 65536 + 192)
    first = report["parameters"][0]
    assert first["name"] == "%x"
    assert first["part_shape"] == "f32[512,64]"
    assert (first["copies"], first["redundant_bytes"]) == (2, 65536)
    assert first["devices"] == [["0-1"], ["2-3"]]
    assert [value["name"] for value in report["results"]] == ["%n"]


def test_a_partitioned_module_shows_its_parameters(capsys: Capture) -> None:
    _, after = paths_of("gathered")
    assert main(["sharding", "show", after]) == 0
    out = capsys.readouterr().out
    assert "%param.1 f32[16,32]" in out
    assert "f32[8,16] on each device" in out
    assert "the module is partitioned: only what still has a sharding is shown" in out


def test_values_that_propagation_has_yet_to_reach_are_left_out(
    tmp_path: Path, capsys: Capture
) -> None:
    text = MODULE.replace("negate(x)", 'custom-call(x), custom_call_target="Sharding"')
    text = text.replace("tuple(n, w)", "tuple(o, w)").replace(
        "  ROOT", "  o = f32[1024,64] sine(n)\n  ROOT"
    )
    out = shown(text, tmp_path, capsys)
    assert "shardings are not propagated yet: values without one are left out" in out
    assert "%o" not in out


def test_shardings_that_tell_no_parts_are_named(tmp_path: Path, capsys: Capture) -> None:
    text = MODULE.replace("{replicated}", "{devices=[1,4]<=[4] last_tile_dims={unreduced}}")
    out = shown(text, tmp_path, capsys)
    assert "1 sharding does not tell the parts: %w:" in out


def test_a_module_without_shardings_is_refused(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "m.hlo").write_text("HloModule m\nENTRY e { ROOT p = f32[8] parameter(0) }\n")
    assert main(["sharding", "show", str(tmp_path / "m.hlo")]) == 2
    assert "no value of m has a sharding" in capsys.readouterr().err


def test_more_parts_than_fit_are_not_drawn(tmp_path: Path, capsys: Capture) -> None:
    text = MODULE.replace("=4\n", "=64\n", 1).replace("[2,2]<=[4]", "[2,32]<=[64]")
    text = text.replace("[2,1,2]<=[4]", "[2,1,32]<=[64]")
    assert "too many parts to draw: 2 x 32" in shown(text, tmp_path, capsys)
