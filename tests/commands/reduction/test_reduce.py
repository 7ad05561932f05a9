"""`hloopt reduce`: predicates, what is written, what is refused, and going on after an end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hloopt.cli import main
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework import registry
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.pass_framework.registry import register_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

STEP = "testdata/mlp_psum_8dev.after_spmd_partitioning.hlo"
SMALL = """HloModule m

ENTRY %main (x: f32[4], y: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  %y = f32[4] parameter(1)
  %sum = f32[4] add(%x, %y)
  %difference = f32[4] subtract(%sum, %y)
  %e = f32[4] exponential(%difference)
  %n = f32[4] negate(%e)
  ROOT %out = f32[4] multiply(%n, %x)
}
"""


class Planted(ModulePass):
    """Fails in one way or another where a difference is the exponent."""

    name = "planted"

    def run(self, module: Module, context: PassContext) -> bool:
        changed = False
        for exponential in list(module.instructions(Opcode.EXPONENTIAL)):
            difference = exponential.operands[0]
            if difference.opcode is Opcode.SUBTRACT and context.apply(difference, "spoilt"):
                self.spoil(difference)
                changed = True
        return changed

    def spoil(self, difference: Instruction) -> None:
        raise KeyError(difference.name)


class Swaps(Planted):
    """Swaps the operands: a miscompile."""

    name = "planted-swap"

    def spoil(self, difference: Instruction) -> None:
        difference.set_operands(list(reversed(difference.operands)))


class Hangs(Planted):
    """Does not end."""

    name = "planted-hang"

    def spoil(self, difference: Instruction) -> None:
        time.sleep(60)


@pytest.fixture(autouse=True)
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    Path("small.hlo").write_text(SMALL)
    Path("step.hlo").write_text((root / STEP).read_text())
    for each in (Planted, Swaps, Hangs):
        register_pass(each.name)(each)


def reduced(path: str = "small.reduced.hlo") -> Module:
    module = parse_module(Path(path).read_text())
    assert verify_module(module) == []
    return module


@pytest.mark.parametrize(
    ("question", "count"),
    [
        (["--pass-fails", "dce,planted"], 3),
        (["--pass-changes-result", "planted-swap"], 4),
        (["--pass-fails", "planted-hang", "--hangs", "1s"], 3),
        (["--report", "instructions(opcode=negate).count == 1"], 2),
        (["--test", "grep -q exponential {}"], 2),
        (["--test", "cat", "--grep", "= f32.* exponential"], 2),
        (["--remark", "applied:planted-swap:spoilt"], 3),
    ],
)
def test_each_predicate_leaves_what_it_needs(question: list[str], count: int) -> None:
    assert main(["reduce", "small.hlo", *question, "-j", "2"]) == 0
    assert reduced().instruction_count() == count
    assert not Path("small.reduced.hlo.trials").exists()


def test_the_file_says_where_it_is_from_and_what_shows_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reduce", "small.hlo", "--pass-fails", "planted", "-o", "out.hlo"]) == 0
    said = capsys.readouterr().err
    assert "out.hlo: 7 → 3 instructions" in said
    command = "hloopt opt out.hlo --passes planted --check"
    assert f"to see it: {command}" in said
    lines = Path("out.hlo").read_text().splitlines()
    assert lines[0] == "// Reduced from small.hlo by hloopt reduce."
    assert f"// To see it: {command}" in lines
    assert main(command.split()[1:]) == 3


def test_the_result_is_the_same_for_any_number_of_jobs() -> None:
    texts = set()
    for jobs in ("1", "3"):
        line = ["step.hlo", "--report", "collectives(kind=all-reduce).count >= 1", "-o", "o.hlo"]
        assert main(["reduce", *line, "-j", jobs]) == 0
        texts.add(Path("o.hlo").read_text())
    assert len(texts) == 1
    assert reduced("o.hlo").instruction_count() <= 4


def test_json_has_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    main(["reduce", "small.hlo", "--pass-fails", "planted", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert found["before"]["instructions"] == 7
    assert found["after"]["instructions"] == 3
    assert found["is_complete"]
    assert found["shown_again"] == 3
    assert "KeyError" in found["signature"]
    assert "difference" not in found["signature"]


class TwoWays(Planted):
    """Fails in another way where nothing is negated."""

    name = "planted-two"

    def spoil(self, difference: Instruction) -> None:
        module = difference.parent.module
        raise KeyError("negated") if any(module.instructions(Opcode.NEGATE)) else ValueError


def test_another_failure_is_set_aside(capsys: pytest.CaptureFixture[str]) -> None:
    register_pass(TwoWays.name)(TwoWays)
    assert main(["reduce", "small.hlo", "--pass-fails", "planted-two", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["after"]["instructions"] == 4
    (other,) = [each for each in found["set_aside"] if "ValueError" in each["signature"]]
    assert "negate" not in other["text"]
    assert main(["reduce", "small.hlo", "--pass-fails", "planted-two"]) == 0
    assert "set aside: another failure, met" in capsys.readouterr().err


def test_verifier_errors_are_reduced_without_verifying(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("small.hlo").write_text(SMALL.replace("%e = f32[4]", "%e = f32[5]"))
    assert main(["verify", "small.hlo", "--format", "json"]) == 1
    (problem, *_) = json.loads(capsys.readouterr().out)
    assert main(["reduce", "small.hlo", "--verify-error", problem["code"]]) == 0
    text = Path("small.reduced.hlo").read_text()
    assert [error.code for error in verify_module(parse_module(text))] == [problem["code"]]
    assert parse_module(text).instruction_count() == 2


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["small.hlo"], 2, "which failure?"),
        ([], 2, "no input"),
        (["small.hlo", "--pass-fails", "dce", "--test", "true"], 2, "one failure at a time"),
        (["small.hlo", "--grep", "x"], 2, "--grep needs --test"),
        (["small.hlo", "--pass-fails", "planned"], 2, "planted"),
        (["small.hlo", "--report", "collectivs.count > 0"], 2, "collectives"),
        (["small.hlo", "--verify-error", "HLO999"], 2, "no code 'HLO999'"),
        (["small.hlo", "--remark", "missed"], 2, "is not KIND:PASS:REGEX"),
        (["small.hlo", "--test", "true", "--grep", "("], 2, "is not a regular expression"),
        (["small.hlo", "--test", "true"], 2, "a module with one constant shows it, too"),
        (["small.hlo", "--test", "false"], 1, "small.hlo does not show it"),
        (["small.hlo", "--test", "exit 125 #"], 2, "cannot tell: exit code 125"),
        (["small.hlo", "--test", "no-such-command"], 2, "cannot tell: exit code 127"),
        (["small.hlo", "--pass-fails", "dce"], 1, "does not show it"),
        (["small.hlo", "--test", "sleep 9 #", "--time-limit", "1s"], 1, "no answer after 1 s"),
        (["small.hlo", "--pass-fails", "planted", "--resume"], 2, "nothing to resume"),
        (["missing.hlo", "--pass-fails", "planted"], 2, "missing.hlo"),
        (["small.hlo", "--hangs", "1s", "--time-limit", "1s"], 2, "failure"),
    ],
)
def test_what_cannot_be_reduced_is_said(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reduce", *arguments]) == code
    assert said in capsys.readouterr().err
    assert not Path("small.reduced.hlo").exists()
    assert not Path("small.reduced.hlo.trials").exists()


def test_a_flaky_predicate_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    script = "test -e seen && rm seen || { touch seen; false; } #"
    here = Path.cwd()
    assert main(["reduce", "small.hlo", "--test", f"cd {here}; {script}"]) == 2
    assert "the predicate is flaky" in capsys.readouterr().err


def test_check_asks_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reduce", "small.hlo", "--pass-fails", "planted", "--check"]) == 0
    assert main(["reduce", "small.hlo", "--pass-fails", "dce", "--check"]) == 1
    assert main(["reduce", "small.hlo", "--test", "exit 125 #", "--check"]) == 2
    assert "small.hlo: shown: pass 'planted' failed" in capsys.readouterr().err
    assert not Path("small.reduced.hlo").exists()


# -- reproducers, budgets, ends -------------------------------------------------------------------


def test_opt_names_the_line_that_reduces(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["opt", "small.hlo", "--passes", "dce,planted", "--repro-dir", "."]
    assert main(line) == 3
    said = capsys.readouterr().err
    command = said.partition("to reduce: ")[2].split("\n")[0]
    assert command.startswith("hloopt reduce --repro ")
    assert main([*command.split()[1:], "-o", "out.hlo"]) == 0
    assert reduced("out.hlo").instruction_count() == 3
    assert main(["opt", "small.hlo", "--passes", "planted-swap", "--validate", "--repro-dir", "."])
    capsys.readouterr()


@pytest.mark.slow
def test_a_budget_ends_it_with_the_best_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["reduce", "step.hlo", "--test", "sleep 0.3; grep -q all-reduce {}", "--budget", "3s"]
    assert main(line) == 0
    assert "the budget ran out" in capsys.readouterr().err
    best = reduced("step.reduced.hlo").instruction_count()
    assert main([*line[:-2], "--resume", "-j", "2"]) == 0
    assert reduced("step.reduced.hlo").instruction_count() <= min(best, 4)


@pytest.mark.slow
def test_killed_at_any_moment_the_best_is_there_and_it_goes_on(root: Path) -> None:
    line = ["reduce", "step.hlo", "--test", "sleep 0.05; grep -q all-reduce {}"]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-m", "hloopt", *line]
    for wait, how in ((1.5, signal.SIGKILL), (2.5, signal.SIGTERM), (1.0, signal.SIGINT)):
        resume = ["--resume"] if Path("step.reduced.hlo.trials").exists() else []
        process = subprocess.Popen([*command, *resume], env=environment)
        time.sleep(wait)
        process.send_signal(how)
        process.wait(10)
        if Path("step.reduced.hlo").exists():
            assert "all-reduce" in reduced("step.reduced.hlo").__str__()
    resume = ["--resume"] if Path("step.reduced.hlo.trials").exists() else []
    subprocess.run([*command, *resume], env=environment, check=True)
    interrupted = Path("step.reduced.hlo").read_text()
    subprocess.run(command, env=environment, check=True)
    assert Path("step.reduced.hlo").read_text() == interrupted
