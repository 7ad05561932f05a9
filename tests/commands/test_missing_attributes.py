"""An attribute that an opcode needs is missing: each command answers with a message and a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.cli import main
from hloopt.diagnostics import HloError, Source
from hloopt.files import read_module
from hloopt.reports.diff.comparison import diff_modules
from hloopt.text import parse_module

CALLEES = """HloModule m, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

greater {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=GT
}

less {
  a = f32[2,2] parameter(0)
  ROOT s = pred[] constant(false)
}

same {
  ROOT a = f32[2,2] parameter(0)
}

ENTRY e {
  p = f32[2,2] parameter(0)
  t = (f32[2,2], f32[2,2]) tuple(p, p)
  k = f32[] constant(0)
  i = s32[] constant(0)
  q = pred[] constant(true)
  token = token[] after-all()
  ROOT r = """
LINES = (
    "f32[2,2] get-tuple-element(t), index=0",
    "f32[2,2] transpose(p), dimensions={1,0}",
    "f32[2,2,2] broadcast(p), dimensions={0,1}",
    "pred[2,2] compare(p, p), direction=LT",
    "f32[2,2] iota(), iota_dimension=0",
    "f32[1,2] slice(p), slice={[0:1], [0:2]}",
    "f32[1,2] dynamic-slice(p, i, i), dynamic_slice_sizes={1,2}",
    "f32[4,4] pad(p, k), padding=1_1x1_1",
    "f32[2,4] concatenate(p, p), dimensions={1}",
    "f32[2] reduce(p, k), dimensions={1}, to_apply=sum",
    "f32[2] reduce(p, k), to_apply=sum, dimensions={1}",
    "f32[2,2] reverse(p), dimensions={0}",
    "f32[2,2] reduce-window(p, k), window={size=1x1}, to_apply=sum",
    "f32[2,2] select-and-scatter(p, p, k), window={size=1x1}, select=greater, scatter=sum",
    "f32[2,2] sort(p), dimensions={1}, to_apply=greater",
    "f32[2,2] map(p, p), dimensions={0,1}, to_apply=sum",
    "f32[2,2] while(p), condition=less, body=same",
    "f32[2,2] while(p), body=same, condition=less",
    "f32[2,2] conditional(q, p, p), true_computation=same, false_computation=same",
    "f32[2,2] conditional(i, p), branch_computations={same}",
    "f32[2,2] call(p), to_apply=same",
    "f32[2,2] fusion(p), kind=kLoop, calls=same",
    "f32[2,2] fusion(p), calls=same, kind=kLoop",
    'f32[2,2] custom-call(p), custom_call_target="f"',
    "f32[2,2] all-reduce(p), replica_groups={}, to_apply=sum",
    "f32[4,2] all-gather(p), replica_groups={}, dimensions={0}",
    "f32[2,2] reduce-scatter(p), replica_groups={}, to_apply=sum, dimensions={0}",
    "f32[2,2] reduce-scatter(p), replica_groups={}, dimensions={0}, to_apply=sum",
    "f32[2,2] all-to-all(p), replica_groups={}, dimensions={0}",
    "f32[2,2] collective-permute(p), source_target_pairs={{0,0}}",
    "s32[] get-dimension-size(p), dimensions={0}",
    "f32[<=2,2] set-dimension-size(p, i), dimensions={0}",
    "f32[2,2] reduce-precision(p), exponent_bits=5, mantissa_bits=10",
    "f32[2,2] rng(k, k), distribution=rng_uniform",
    "(u64[2], f32[2,2]) rng-bit-generator(p), algorithm=rng_default",
    "c64[2,2] fft(p), fft_type=RFFT, fft_length={2}",
    "f32[2,2] fft(p), fft_length={2}, fft_type=RFFT",
    "f32[2,2] convolution(p, p), dim_labels=bf_io->bf",
    "f32[2,2] batch-norm-inference(p, p, p, p, p), epsilon=1, feature_index=0",
    'f32[2,2] domain(p), domain={kind="sharding", entry={replicated}, exit={replicated}}',
    "(f32[2,2], f32[4,2]) all-gather-start(p), replica_groups={}, dimensions={0}",
    "((f32[2,2]), f32[2,2], s32[]) async-start(p), calls=same",
)
COMMANDS = (
    *("memory", "cost", "schedule", "verify", "run", "fmt --check"),
    *("analyze replication", "analyze loops", "analyze call-graph", "analyze overlap"),
    *("opt --passes dce,algsimp,cse", "opt --no-verify --passes dce,algsimp -o OUT"),
)


def _broken(line: str) -> str:
    """The module with this line, its last attribute left out."""
    shape_and_operands, _, attributes = line.partition("), ")
    cut = max(attributes.rfind(", "), 0)
    while attributes.count("{", 0, cut) != attributes.count("}", 0, cut):
        cut = max(attributes.rfind(", ", 0, cut), 0)
    rest = f", {attributes[:cut]}" if cut else ""
    return f"{CALLEES}{shape_and_operands}){rest}\n}}\n"


def _ends_well(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = main(arguments)
    err = capsys.readouterr().err
    assert code in (0, 1, 2, 3), err
    if code == 2:
        assert "error" in err
        assert " --> " in err, err


@pytest.mark.parametrize("line", LINES)
def test_diff_says_what_is_missing(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = str(tmp_path / "good.hlo"), str(tmp_path / "bad.hlo")
    Path(bad).write_text(_broken(line))
    Path(good).write_text(_broken(LINES[0]).replace("get-tuple-element(t)", "negate(p)"))
    for pair in ([good, bad], [bad, good], [bad, bad]):
        for flags in ([], ["--no-memory"]):
            _ends_well(["diff", *pair, *flags], capsys)
    _ends_well(["equivalent", good, bad], capsys)


ELEMENT = """HloModule m

f {
  a = (f32[], f32[]) parameter(0)
  ROOT g = f32[] get-tuple-element(a), index=0
}

ENTRY e {
  p = f32[] parameter(0)
  t = (f32[], f32[]) tuple(p, p)
  ROOT c = f32[] call(t), to_apply=f
}
"""


def test_an_element_of_a_tuple_without_its_number_has_a_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = str(tmp_path / "good.hlo"), str(tmp_path / "bad.hlo")
    Path(good).write_text(
        ELEMENT.replace("tuple(p, p)", "tuple(p, n)").replace(
            "  t =", "  n = f32[] negate(p)\n  t ="
        )
    )
    Path(bad).write_text(ELEMENT.replace(", index=0", ""))
    for pair in ([good, bad], [bad, good]):
        assert main(["diff", *pair]) == 2
        err = capsys.readouterr().err
        assert "error[HLO106]: %g: get-tuple-element needs the attribute 'index'\n" in err
        assert f" --> {bad}:5:8\n" in err
    modules = parse_module(Source("good.hlo", ELEMENT)), read_module(bad)
    with pytest.raises(HloError, match="needs the attribute 'index'") as caught:
        diff_modules(*modules)
    assert caught.value.location == (5, 8)


def test_a_report_of_what_is_not_verified_is_left_out_if_it_is_invalid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "bad.hlo", str(tmp_path / "out.hlo")
    path.write_text(
        ELEMENT.replace(", index=0", "").replace("ROOT c", "d = f32[] abs(p)\n  ROOT c")
    )
    assert main(["opt", "--no-verify", "--passes", "dce", str(path), "-o", out]) == 0
    assert "no report: %g: get-tuple-element needs the attribute" in capsys.readouterr().err
    path.write_text(ELEMENT.replace("ROOT c", "d = f32[7] abs(p)\n  ROOT c"))
    assert main(["opt", "--no-verify", "--passes", "dce", str(path), "-o", out]) == 0
    err = capsys.readouterr().err
    assert "no report of memory and schedule: %d: " in err
    assert "abs" in err, "the difference is reported"


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_every_command_says_what_is_missing(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = str(tmp_path / "bad.hlo")
    Path(bad).write_text(_broken(line))
    for command in COMMANDS:
        words = command.replace("OUT", str(tmp_path / "out.hlo")).split()
        _ends_well([*words, bad], capsys)
