"""`hloopt cost`: formats, targets, pages, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

TEXT = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    return path


def test_several_files_are_reported_one_after_the_other(
    module: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module.with_name("n.hlo").write_text(TEXT)
    assert main(["cost", str(module.parent), "--target", "b200"]) == 0
    assert capsys.readouterr().out.count("least time  ") == 2
    assert main(["cost", str(module.parent), "--format", "json", "--by", "opcode"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [Path(report["file"]).name for report in reports] == ["m.hlo", "n.hlo"]
    assert [report["flops"] for report in reports] == [4, 4]


def test_the_target_is_a_choice(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", str(module), "--target", "mi300x"]) == 0
    assert "on AMD Instinct MI300X" in capsys.readouterr().out
    assert main(["cost", str(module), "--target", "mi300"]) == 2
    assert "did you mean 'mi300x'?" in capsys.readouterr().err


def test_the_page_is_written(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = module.with_name("page.html")
    target = ["--target", "b200"]
    assert main(["cost", str(module), *target, "--html", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    out, err = capsys.readouterr()
    assert "least time" in out
    assert err == f"wrote {page}\n"
    assert main(["cost", str(module), *target, "--html", "-"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (page.read_text(encoding="utf-8"), "")


def test_the_page_is_for_one_file(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.with_name("n.hlo").write_text(TEXT)
    page = module.with_name("page.html")
    assert main(["cost", str(module.parent), "--target", "b200", "--html", str(page)]) == 2
    assert "--html is for one file, not 2" in capsys.readouterr().err
    assert not page.exists()


def test_an_invalid_module_is_an_error(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.write_text(TEXT.replace("q = f32[4]", "q = f32[5]"))
    assert main(["cost", str(module)]) == 2
    assert f"--> {module}:5:" in capsys.readouterr().err


TIMED = """HloModule m, num_partitions=8

f { x = f32[8192] parameter(0) ROOT y = f32[8192] negate(x) }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
body { v = (s32[], f32[8192]) parameter(0) i = s32[] get-tuple-element(v), index=0
  o = s32[] constant(1) n = s32[] add(i, o) w = f32[8192] get-tuple-element(v), index=1
  l = f32[8192] fusion(w), kind=kLoop, calls=f ROOT t = (s32[], f32[8192]) tuple(n, l) }
cond { u = (s32[], f32[8192]) parameter(0) k = s32[] get-tuple-element(u), index=0
  m = s32[] constant(5) ROOT q = pred[] compare(k, m), direction=LT }
ENTRY e {
  p = f32[8192] parameter(0)
  s = f32[8192] all-reduce-start(p), replica_groups={}, to_apply=add
  d = f32[8192] all-reduce-done(s)
  z = s32[] constant(0)
  g = (s32[], f32[8192]) tuple(z, d)
  loop = (s32[], f32[8192]) while(g), condition=cond, body=body
  h = f32[8192] get-tuple-element(loop), index=1
  ROOT r = f32[8192] custom-call(h), custom_call_target="mine"
}
"""


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    path = tmp_path / "timed.hlo"
    path.write_text(TIMED)
    return path


def test_times_say_where_they_are_from(timed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--latency", "--target", "h100_sxm"]
    assert main(["cost", str(timed), *options, "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in report["instructions"]}
    assert rows["l"]["from"] == "roofline"
    assert rows["l"]["runs"] == 5
    assert report["unit"] == "us"
    assert rows["l"]["total"] == pytest.approx(5 * rows["l"]["time"])
    assert rows["r"]["from"] == "guess"
    assert rows["r"]["kind"] == "mine"
    assert "loop" not in rows
    (operation,) = report["operations"]
    assert (operation["name"], operation["done"]) == ("s", "d")
    assert operation["from"] == "collective table"
    assert report["guesses"] >= 1
    assert any("%r" in note for note in report["notes"])


def test_times_as_a_page(timed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = timed.with_name("p.pbtxt")
    profile.write_text('costs { name: "r" cost_us: 250 } costs { name: "s" cost_us: 30 }')
    options = ["--latency", "--profile", str(profile), "--target", "h100_sxm"]
    assert main(["cost", str(timed), *options, "--top", "1"]) == 0
    out = capsys.readouterr().out
    assert f"the profile {profile}, else speed of light on NVIDIA H100" in " ".join(out.split())
    assert "250.0 us" in out
    assert "30.0 us" in out
    assert "more; --top shows them" in out
    assert main(["cost", str(timed), "--latency", "--cost-model", "fixed"]) == 0
    out = capsys.readouterr().out
    assert "cycles are abstract" in out
    assert " us" not in out


def test_measured_times_make_a_roofline(timed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile, page = timed.with_name("p.pbtxt"), timed.with_name("page.html")
    profile.write_text('costs { name: "l" cost_us: 100 }')
    command = ["cost", str(timed), "--target", "h100_sxm", "--html", str(page)]
    assert main(command) == 0
    assert "share of the least time over flops per byte" in capsys.readouterr().out
    assert "<circle" not in page.read_text(encoding="utf-8")
    assert main([*command, "--profile", str(profile)]) == 0
    out = capsys.readouterr().out
    assert "measured flop/s over flops per byte" in out
    assert "500.0 us" in out
    assert page.read_text(encoding="utf-8").count("<circle") == 1
    assert main([*command, "--profile", str(profile), "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["measured"] == {"source": str(profile), "seconds": pytest.approx(500e-6)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cost-model", "sol"), "say --latency, too"),
        (("--latency", "--by", "opcode"), "--latency has no --by"),
        (
            ("--latency", "--target", "mi300x", "--cost-model", "sol"),
            "knows too little of the target mi300x",
        ),
        (("--latency", "--cost-model", "roofline"), "cost model 'roofline' needs a target"),
        (("--latency", "--cost-model", "table"), "needs a file"),
        (("--latency", "--cost-model", "sol"), "cost model 'sol' needs a target"),
        (("--preset", "xla-gpu"), "say --latency, too"),
        (("--html", "x.html"), "needs a target"),
        (("--latency", "--cost-model", "sol", "--cost-table", "t"), "does not read the cost_table"),
        (("--latency", "--profile", "none.pbtxt"), "cannot read none.pbtxt"),
    ],
)
def test_bad_choices_are_one_message(
    timed: Path, options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", str(timed), *options]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""
