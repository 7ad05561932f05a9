"""`hloopt opt --validate`: miscompiles are found, undone, reported, and can be repeated."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hloopt.cli import main
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import ModulePass, PassContext, register
from hloopt.pass_framework.registry import PASSES

Capture = pytest.CaptureFixture[str]

TEXT = """HloModule m

ENTRY %e (p: f32[4], q: f32[4]) -> f32[4] {
  p = f32[4]{0} parameter(0)
  q = f32[4]{0} parameter(1)
  dead = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} subtract(p, q)
}
"""
CLEAN = TEXT.replace("  dead = f32[4]{0} negate(p)\n", "")
CANNOT_RUN = TEXT.replace(
    "  dead",
    "  s = u64[2]{0} constant({1, 2})\n"
    "  i = (u64[2]{0}, f32[2]{0}) rng-bit-generator(s), algorithm=rng_default\n  dead",
)


@register("turns")
class Turns(ModulePass):
    """Turn the first subtraction round: a miscompile."""

    def run(self, module: Module, context: PassContext) -> bool:
        for subtraction in module.instructions(Opcode.SUBTRACT):
            subtraction.set_operands(list(reversed(subtraction.operands)))
            return True
        return False


@pytest.fixture(autouse=True)
def _passes_for_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    home = ModuleType("miscompiling_passes")
    vars(home)["Turns"] = Turns
    monkeypatch.setitem(PASSES, "turns", "miscompiling_passes:Turns")
    monkeypatch.setitem(sys.modules, "miscompiling_passes", home)


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    return path


def test_without_validation_nobody_notices(step: Path, capsys: Capture) -> None:
    assert main(["opt", str(step), "--passes", "turns"]) == 0
    assert "subtract(%q, %p)" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--validate", "--validate=end"])
def test_a_miscompile_is_found_at_the_end(step: Path, capsys: Capture, option: str) -> None:
    output = step.with_name("out.hlo")
    arguments = ["opt", str(step), "--passes", "turns,dce", option, "-o", str(output)]
    assert main(arguments) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(
        "error[HLO702]: the passes change what the module computes: output[0] was"
    )
    assert "--validate each names the pass" in err
    assert not output.exists()


def test_the_pass_at_fault_is_named_and_its_reproducer_repeats_it(
    step: Path, tmp_path: Path, capsys: Capture
) -> None:
    folder, output = tmp_path / "repros", tmp_path / "out.hlo"
    options = ["--validate", "each", "--seeds", "2", "--repro-dir", str(folder)]
    arguments = ["opt", str(step), "--passes", "dce,turns", *options, "-o", str(output)]
    assert main(arguments) == 3
    _, err = capsys.readouterr()
    assert "error[HLO702]: pass 'turns' failed: it changes what the module computes: " in err
    assert "the module is unchanged; to repeat: hloopt opt --repro " in err
    assert not output.exists()
    (reproducer,) = folder.iterdir()
    assert '["--passes", "turns", "--validate", "each", "--seeds", "2"]' in reproducer.read_text()
    assert reproducer.read_text().endswith(CLEAN), "what dce left"
    again = ["opt", "--repro", str(reproducer), "--repro-dir", str(tmp_path / "more")]
    assert main(again) == 3
    assert capsys.readouterr().err.splitlines()[0] == err.splitlines()[0]


def test_a_reproducer_keeps_shrink(step: Path, tmp_path: Path, capsys: Capture) -> None:
    step.write_text(TEXT.replace("f32[4]", "f32[9000]"))
    folder = tmp_path / "repros"
    options = ["--validate", "each", "--shrink", "--repro-dir", str(folder)]
    assert main(["opt", str(step), "--passes", "turns", *options]) == 3
    (reproducer,) = folder.iterdir()
    assert '"--shrink"' in reproducer.read_text()
    assert "f32[9000]" in reproducer.read_text()
    assert main(["opt", "--repro", str(reproducer), "--repro-dir", str(folder)]) == 3
    assert "HLO702" in capsys.readouterr().err


def test_on_error_skip_goes_on_with_the_module_as_it_was(
    step: Path, tmp_path: Path, capsys: Capture
) -> None:
    pipeline = tmp_path / "skip.yaml"
    pipeline.write_text(
        "name: skip\ndescription: x\npasses:\n  - turns:\n    on_error: skip\n  - dce\n"
    )
    options = ["--validate", "each", "--repro-dir", str(tmp_path / "repros")]
    assert main(["opt", str(step), "-p", str(pipeline), *options]) == 0
    out, err = capsys.readouterr()
    assert out == CLEAN
    assert "warning: pass 'turns' failed and was skipped: it changes what the module" in err
    assert len(list((tmp_path / "repros").iterdir())) == 1


@pytest.mark.parametrize("option", ["--check", "--diff"])
def test_checks_fail_too(step: Path, capsys: Capture, option: str) -> None:
    assert main(["opt", str(step), "--passes", "turns", "--validate", option]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "HLO702" in err


def test_other_files_are_not_held_up(step: Path, tmp_path: Path, capsys: Capture) -> None:
    inputs, output = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    (inputs / "a.hlo").write_text(TEXT)
    (inputs / "b.hlo").write_text(TEXT.replace("subtract", "add"))
    options = ["--validate", "-o", str(output), "--format", "json"]
    assert main(["opt", str(inputs), "--passes", "turns,dce", *options]) == 3
    found = json.loads(capsys.readouterr().out)
    assert "HLO702" in found[0]["error"]
    assert found[1]["error"] is None
    assert found[1]["modules"][0]["comparisons"] == 1
    assert [path.name for path in output.iterdir()] == ["b.hlo"]


@pytest.mark.parametrize(
    ("passes", "validate", "said"),
    [
        ("dce", "end", "validated: the module computes what it did (compared once; also"),
        ("dce,turns,turns", "end", "(compared once; also on"),
        ("cse", "each", "validated: nothing changed"),
    ],
)
def test_the_report_says_what_was_validated(
    step: Path, capsys: Capture, passes: str, validate: str, said: str
) -> None:
    arguments = ["opt", str(step), "--passes", passes, "--validate", validate, "--report"]
    assert main(arguments) == 0
    assert said in capsys.readouterr().err


def test_each_change_is_compared(step: Path, capsys: Capture) -> None:
    twice = "  a = f32[4]{0} abs(p)\n  b = f32[4]{0} abs(p)\n  ROOT"
    step.write_text(TEXT.replace("(p, q)", "(a, b)", 1).replace("  ROOT", twice))
    options = ["--validate", "each", "--report", "-o", str(step.with_name("out.hlo"))]
    assert main(["opt", str(step), "--passes", "dce,cse,dce", *options]) == 0
    lines = capsys.readouterr().err.splitlines()
    changed = [["dce", "yes"], ["cse", "yes"], ["dce", "no"]]
    assert [line.split()[:2] for line in lines[1:4]] == changed
    assert "(compared 2 times; also on" in lines[4]


@pytest.mark.parametrize("validate", ["end", "each"])
def test_what_cannot_be_run_cannot_be_validated(step: Path, capsys: Capture, validate: str) -> None:
    step.write_text(CANNOT_RUN)
    assert main(["opt", str(step), "--passes", "dce", "--validate", validate]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error[HLO501]: cannot validate: %i: random bits are integers")
    assert f"--> {step}:7:3" in err
    assert "leave --validate out" in err
    assert main(["opt", str(step), "--passes", "turns", "--check"]) == 1, "it can be optimized"


def test_too_large_a_module_can_be_validated_smaller(step: Path, capsys: Capture) -> None:
    step.write_text(TEXT.replace("f32[4]", "f32[90000,90000]").replace("{0}", "{1,0}"))
    arguments = ["opt", str(step), "--passes", "dce", "--validate"]
    assert main(arguments) == 2
    assert "--shrink makes dimensions smaller, --max-memory allows more" in capsys.readouterr().err
    assert main([*arguments, "--shrink"]) == 0
    assert "dead" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--validate", "sometimes"], "'sometimes' is not one of 'end', 'each'"),
        (["--validate", "--seeds", "0"], "--seeds"),
    ],
)
def test_wrong_usage(step: Path, capsys: Capture, options: list[str], message: str) -> None:
    assert main(["opt", str(step), "--passes", "dce", *options]) == 2
    assert message in capsys.readouterr().err


def test_devices_to_validate_on_can_be_chosen_and_are_repeated(
    step: Path, tmp_path: Path, capsys: Capture
) -> None:
    """The module reads partition-id, which is 0 on one device."""
    step.write_text(
        TEXT.replace("dead = f32[4]{0} negate(p)", "i = u32[] partition-id() f = f32[] convert(i)")
        .replace(
            "ROOT r",
            "b = f32[4]{0} broadcast(f), dimensions={} a = f32[4]{0} multiply(p, b) ROOT r",
        )
        .replace("subtract(p, q)", "subtract(a, q)")
    )
    folder = tmp_path / "repros"
    options = ["--validate", "each", "--devices", "1x2", "--repro-dir", str(folder)]
    assert main(["opt", str(step), "--passes", "turns", *options]) == 3
    assert "on device 0" in capsys.readouterr().err
    (reproducer,) = folder.iterdir()
    assert '"--devices", "1x2"' in reproducer.read_text()
    assert main(["opt", "--repro", str(reproducer), "--repro-dir", str(folder)]) == 3
    assert "on device 0" in capsys.readouterr().err


@register("zeroes", preserves="finite")
class Zeroes(ModulePass):
    """Take what is multiplied by zero for zero: right, where it is finite."""

    def run(self, module: Module, context: PassContext) -> bool:
        for product in list(module.instructions(Opcode.MULTIPLY)):
            product.replace_all_uses_with(product.operands[1])
            return True
        return False


ZERO = """HloModule m

ENTRY %e (p: f32[4]) -> f32[4] {
  p = f32[4]{0} parameter(0)
  z = f32[4]{0} constant({0, 0, 0, 0})
  m = f32[4]{0} multiply(p, z)
  ROOT r = f32[4]{0} copy(m)
}
"""


@pytest.mark.parametrize("validate", ["end", "each"])
def test_a_difference_on_special_values_alone_is_reported(
    step: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, validate: str
) -> None:
    vars(sys.modules["miscompiling_passes"])["Zeroes"] = Zeroes
    monkeypatch.setitem(PASSES, "zeroes", "miscompiling_passes:Zeroes")
    step.write_text(ZERO)
    assert main(["opt", str(step), "--passes", "zeroes,dce", "--validate", validate]) == 0
    out, err = capsys.readouterr()
    assert "multiply" not in out
    assert err.startswith("on special values alone: output[")
    assert "inputs with NaN" in err
    monkeypatch.setattr(Zeroes, "preserves", "rounding")
    assert main(["opt", str(step), "--passes", "zeroes,dce", "--validate", validate]) == 3
    assert "on special values alone, output[" in capsys.readouterr().err


@register("without-round-trips", preserves="precision")
class WithoutRoundTrips(ModulePass):
    """Leave out conversions to bf16 and back."""

    def run(self, module: Module, context: PassContext) -> bool:
        back = module["back"]
        back.replace_all_uses_with(back.operands[0].operands[0])
        return True


ROUNDED = """HloModule m

ENTRY %e (p: f32[64], q: f32[64]) -> bf16[64] {
  p = f32[64]{0} parameter(0)
  q = f32[64]{0} parameter(1)
  m = f32[64]{0} multiply(p, q)
  there = bf16[64]{0} convert(m)
  back = f32[64]{0} convert(there)
  s = f32[64]{0} add(back, p)
  ROOT r = bf16[64]{0} convert(s)
}
"""


def test_a_change_of_precision_is_told_in_ulps(
    step: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    vars(sys.modules["miscompiling_passes"])["WithoutRoundTrips"] = WithoutRoundTrips
    monkeypatch.setitem(PASSES, "without-round-trips", "miscompiling_passes:WithoutRoundTrips")
    step.write_text(ROUNDED)
    line = ["opt", str(step), "--passes", "without-round-trips,dce", "--validate", "each"]
    output = str(step.with_name("out.hlo"))
    assert main([*line, "-o", output]) == 0
    told = r"output is off by [\d.]+ of [\d.]+ ulps of bf16\)"
    assert re.search(told, capsys.readouterr().err.replace("\n", " "))
    assert main([*line, "-o", output, "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    (near,) = found["modules"][0]["validation"]["outputs"]
    assert near["narrowest"] == "bf16"
    assert 0 < near["narrowest_ulps"] <= near["narrowest_ulps_allowed"]
    monkeypatch.setattr(WithoutRoundTrips, "preserves", "bits")
    assert main([*line, "-o", output]) == 3


BRANCH = """HloModule m

%up (a: f32[4]) -> f32[4] {
  a = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} add(a, a)
}

%down (a: f32[4]) -> f32[4] {
  a = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} negate(a)
}

ENTRY %e (p: f32[4], i: s32[]) -> f32[4] {
  p = f32[4]{0} parameter(0)
  i = s32[] parameter(1)
  k = s32[] constant(12345)
  c = pred[] compare(i, k), direction=EQ
  dead = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} conditional(c, p, p), true_computation=%up, false_computation=%down
}
"""


def test_what_never_ran_is_named_whether_or_not_there_is_a_report(
    step: Path, capsys: Capture
) -> None:
    step.write_text(BRANCH)
    assert main(["opt", str(step), "--passes", "dce", "--validate"]) == 0
    assert f"not compared: branch 0 (%up) of %r.2 ({step}:19) never ran" in capsys.readouterr().err
    check = ["--check", "--format", "json"]
    assert main(["opt", str(step), "--passes", "dce", "--validate", *check]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    validation = found["modules"][0]["validation"]
    assert validation["special_values"] == ["NaN", "infinities", "zeros"]
    assert len(validation["not_compared"]) == 1
    assert main(["equivalent", str(step), str(step)]) == 0
    assert "not compared: branch 0 (%up)" in capsys.readouterr().out


def test_inputs_may_be_filled_as_for_run(step: Path, capsys: Capture) -> None:
    """Zeros show nothing of turned subtractions; the reproducer says so, too."""
    arguments = ["opt", str(step), "--passes", "turns", "--validate", "--fill"]
    assert main([*arguments, "zeros"]) == 0
    assert main([*arguments, "iota", "--report"]) == 0, "both parameters count alike"
    assert "(compared once)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-steps", "2"], "stopped after 2 steps"),
        (["--max-memory", "20B"], "would take"),
        (["--time-limit", "1ms"], "the time limit is 0.001 s"),
    ],
)
def test_validation_stops_at_limits(
    step: Path, capsys: Capture, options: list[str], said: str
) -> None:
    step.write_text(
        TEXT.replace("subtract(p, q)", "subtract(w, q)")
        .replace("  ROOT", "  w = f32[4]{0} while(p), condition=%ever, body=%more\n  ROOT")
        .replace("ENTRY", ENDLESS + "ENTRY")
    )
    assert main(["opt", str(step), "--passes", "dce", "--validate", *options]) == 2
    assert said in capsys.readouterr().err


ENDLESS = """%ever (a: f32[4]) -> pred[] {
  a = f32[4]{0} parameter(0)
  ROOT t = pred[] constant(true)
}

%more (a: f32[4]) -> f32[4] {
  a = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} negate(a)
}

"""


def test_a_time_is_one(capsys: Capture, step: Path) -> None:
    arguments = ["opt", str(step), "--passes", "dce", "--validate", "--time-limit", "soon"]
    assert main(arguments) == 2
    assert "'soon' is no time: for example 30s" in capsys.readouterr().err
