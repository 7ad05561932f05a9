"""`hloopt analyze replication`: axes, JSON, annotated modules. More in tests/golden/analyze."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main
from hloopt.files import load

TESTDATA = Path(__file__).resolve().parents[3] / "testdata"
STEP = str(TESTDATA / "transformer_unrolled_8dev.after_optimizations.hlo.gz")
TEXT = """HloModule m, replica_count=2, num_partitions={partitions}

cond {{
  cp = (s32[], f32[8]{{0}}) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  n = s32[] constant(10)
  ROOT less = pred[] compare(ci, n), direction=LT
}}

body {{
  bp = (s32[], f32[8]{{0}}) parameter(0)
  i = s32[] get-tuple-element(bp), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8]{{0}} get-tuple-element(bp), index=1
  y = f32[8]{{0}} add(x, x), metadata={{op_name="loop/y"}}
  ROOT r = (s32[], f32[8]{{0}}) tuple(next, y)
}}

ENTRY main {{
  zero = s32[] constant(0)
  p = f32[8]{{0}} parameter(0), parameter_replication={{true}}
  t = (s32[], f32[8]{{0}}) tuple(zero, p)
  w = (s32[], f32[8]{{0}}) while(t), condition=cond, body=body, backend_config={{{trips}}}
  z = f32[8]{{0}} get-tuple-element(w), index=1
  q = f32[8]{{0}} parameter(1)
  ROOT last = f32[8]{{0}} subtract(z, q)
}}
"""
TRIPS = '"known_trip_count":{"n":"10"}'


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "m.hlo"
    file.write_text(TEXT.format(partitions=1, trips=TRIPS))
    return str(file)


def test_work_in_loops_counts_once_for_each_trip(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "replication", path, "--format", "json"]) == 0
    ((report,),) = (found["axes"] for found in json.loads(capsys.readouterr().out))
    assert (report["axis"], report["devices"]) == ("replicas", 2)
    (loop,) = (group for group in report["redundant"] if group["origin"] == "loop/y")
    assert (loop["flops"], loop["runs"], loop["runs_known"]) == (80, 10, True)
    assert (loop["instructions"], loop["names"]) == (1, ["y"])
    # The sums of y, the counter, and the comparisons; not the last subtraction.
    assert report["same_on_all"]["flops"] == report["total"]["flops"] - 8 == 80 + 10 + 11
    leaves = {i["name"]: i["leaves"] for i in report["instructions"]}
    assert leaves["last"] == [{"index": [], "same_on": "none"}]
    assert leaves["w"] == [{"index": [0], "same_on": "all"}, {"index": [1], "same_on": "all"}]


def test_loops_of_unknown_trip_counts_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.hlo"
    text = TEXT.format(partitions=1, trips='"a":"b"')
    file.write_text(text.replace("zero = s32[] constant(0)", "zero = s32[] parameter(2)"))
    assert main(["analyze", "replication", str(file)]) == 0
    assert "loops whose trip count is not known take one trip: %w" in capsys.readouterr().out


def test_axes_with_several_devices_are_compared_unless_one_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(TEXT.format(partitions=4, trips=TRIPS))
    found = {}
    for options in ((), ("--cross-partition",), ("--devices", "1x4"), ("--devices", "1x1")):
        assert main(["analyze", "replication", str(file), *options, "--format", "json"]) == 0
        (report,) = json.loads(capsys.readouterr().out)
        found[options] = [axis["axis"] for axis in report["axes"]]
    assert list(found.values()) == [["replicas", "partitions"], ["partitions"], ["partitions"], []]


def test_a_module_for_one_device_has_nothing_to_compare(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "replication", path, "--devices", "1x1"]) == 0
    assert "it is for one device" in capsys.readouterr().out


def test_annotated_modules_are_valid_and_keep_their_attributes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    annotated = tmp_path / "annotated.hlo"
    arguments = ["analyze", "replication", STEP, "--partial", "--annotate", str(annotated)]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "same in sets" in out
    assert err == f"wrote {annotated}\n"
    before, after = load(STEP), load(str(annotated))
    assert after.instruction_count() == before.instruction_count()
    assert after.entry.root.attributes["frontend_attributes"].count("_hloopt_same_across_") == 1


def test_a_module_with_nothing_to_compare_is_written_as_it_was(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--devices", "1x1", "--annotate", "-"]
    assert main(["analyze", "replication", path, *options]) == 0
    out, err = capsys.readouterr()
    assert out == Path(path).read_text()
    assert err.startswith("nothing to compare")


def test_only_one_file_can_be_annotated(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "replication", path, STEP, "--annotate", "-"]) == 2
    assert "--annotate is for one file, not 2" in capsys.readouterr().err


def test_tables_fit_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "replication", STEP, "--partial", "--color", "never"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("on {0,2,4,6} {1,3,5,7}" in line for line in lines)
