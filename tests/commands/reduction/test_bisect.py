"""`hloopt bisect`: the pass, its run, the one application; what is refused; handing over."""

from __future__ import annotations

import json
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

CHAIN = """HloModule m

ENTRY %main (x: f32[4], y: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  %y = f32[4] parameter(1)
  %one = f32[4] subtract(%x, %y)
  %n1 = f32[4] negate(%one)
  %two = f32[4] subtract(%n1, %y)
  %n2 = f32[4] negate(%two)
  %three = f32[4] subtract(%n2, %y)
  %n3 = f32[4] negate(%three)
  %e = f32[4] exponential(%n3)
  ROOT %out = f32[4] multiply(%e, %x)
}
"""


class OnePerRun(ModulePass):
    """Turns the first `negate` into `abs`; fails where only one is left."""

    name = "planted-late"

    def run(self, module: Module, context: PassContext) -> bool:
        negates = list(module.instructions(Opcode.NEGATE))
        if not negates or not context.apply(negates[0], "made positive"):
            return False
        if len(negates) == 1:
            raise KeyError(negates[0].name)
        replace(negates[0], Opcode.ABS)
        return True


class Swaps(ModulePass):
    """Swaps the operands of each `subtract`: harmless for the first two, which it swaps twice."""

    name = "planted-swap"

    def run(self, module: Module, context: PassContext) -> bool:
        changed = False
        for subtract in list(module.instructions(Opcode.SUBTRACT)):
            if context.apply(subtract, "swapped operands"):
                if subtract.name == "three":
                    subtract.set_operands(list(reversed(subtract.operands)))
                else:
                    replace(subtract, Opcode.SUBTRACT)
                changed = True
        return changed


class Refuses(ModulePass):
    """Fails whatever the module is, without any application."""

    name = "planted-refusal"

    def run(self, module: Module, context: PassContext) -> bool:
        raise KeyError("always")


class Spoils(ModulePass):
    """Changes the result, and asks nobody whether it may."""

    name = "planted-unasked"

    def run(self, module: Module, context: PassContext) -> bool:
        for exponential in list(module.instructions(Opcode.EXPONENTIAL)):
            replace(exponential, Opcode.NEGATE)
            return True
        return False


def replace(old: Instruction, opcode: Opcode) -> None:
    """Put an instruction of the same operands and shape in the place of another."""
    new = old.parent.add(opcode, old.shape, old.operands)
    old.replace_all_uses_with(new)
    old.parent.remove(old)


@pytest.fixture(autouse=True)
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    Path("chain.hlo").write_text(CHAIN)
    for each in (OnePerRun, Swaps, Refuses, Spoils):
        register_pass(each.name)(each)


def bisected(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["bisect", "chain.hlo", *arguments, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


# -- what is found --------------------------------------------------------------------------------


def test_the_pass_and_its_application_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    passes = "tuple-simplifier,dce,planted-swap,dce"
    found = bisected("--pass-changes-result", passes, capsys=capsys)
    assert found == {
        "file": "chain.hlo",
        "pass": "planted-swap",
        "run": 3,
        "run_of_pass": 1,
        "iteration": None,
        "application": 3,
        "instruction": "three",
        "what": "swapped operands",
        "failure": found["failure"],
        "command": f"hloopt opt chain.hlo --passes {passes} --validate each --check --opt-limit 3",
    }
    assert "changes what the module computes" in str(found["failure"])


def test_the_command_that_is_named_shows_it_and_one_application_less_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = bisected("--pass-changes-result", "dce,planted-swap", capsys=capsys)
    command = str(found["command"]).split()[1:]
    assert main(command) == 3
    assert main([*command[:-1], "2"]) == 1  # it would change, no more


def test_the_run_in_a_fixpoint_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    passes = "planted-late,fixpoint(dce,planted-late)"
    assert main(["bisect", "chain.hlo", "--passes", passes]) == 0
    first, application, *_ = capsys.readouterr().out.splitlines()
    assert first == (
        "pass: planted-late (its run 3, run 5 of all passes, iteration 2 of its fixpoint)"
    )
    assert application == "application: 3, %n3: made positive"


def test_a_pipeline_by_name_is_bisected(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text("name: mine\npasses:\n  - dce\n  - planted-refusal\n")
    found = bisected("-p", "mine.yaml", capsys=capsys)
    assert (found["pass"], found["run"]) == ("planted-refusal", 2)
    assert str(found["command"]).startswith("hloopt opt chain.hlo -p mine.yaml --check")


@pytest.mark.parametrize("question", ["planted-refusal", "planted-swap{},planted-refusal"])
def test_a_failure_that_needs_no_application_says_so(
    question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bisect", "chain.hlo", "--pass-fails", question]) == 0
    said = capsys.readouterr().out
    assert "pass: planted-refusal (its run 1, run " in said
    assert "application: none: " in said
    assert "--opt-limit" not in said


def test_a_pass_that_asks_nobody_is_one_application(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = bisected("--pass-changes-result", "dce,planted-unasked", capsys=capsys)
    assert (found["pass"], found["application"]) == ("planted-unasked", 1)
    assert found["what"] == "changed the module"


@pytest.mark.parametrize(
    ("question", "name", "command"),
    [
        (["--test", "grep -q 'abs(' {}"], "planted-late", "grep -q 'abs(' out.hlo"),
        (["--test", "cat", "--grep", "= f32.* abs"], "planted-late", "cat out.hlo"),
        (
            ["--report", "instructions(opcode=negate).count <= 2"],
            "planted-late",
            "hloopt expect out.hlo 'instructions(opcode=negate).count <= 2'",
        ),
    ],
)
def test_what_is_asked_of_the_result_finds_the_pass(
    question: list[str], name: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = bisected("--passes", "dce,planted-late,dce", *question, capsys=capsys)
    assert (found["pass"], found["run"], found["application"]) == (name, 2, 1)
    opt = "hloopt opt chain.hlo --passes dce,planted-late,dce --opt-limit 1 -o out.hlo"
    assert found["command"] == f"{opt}; {command}"


def test_a_remark_finds_the_application(capsys: pytest.CaptureFixture[str]) -> None:
    question = "applied:planted-swap:swapped"
    found = bisected("--passes", "dce,planted-swap", "--remark", question, capsys=capsys)
    assert (found["pass"], found["instruction"]) == ("planted-swap", "one")


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["chain.hlo"], 2, "which pipeline?"),
        ([], 2, "Missing argument 'FILE'"),
        (["chain.hlo", "--passes", "dce", "-p", "simplify"], 2, "give one of them"),
        (["chain.hlo", "--passes", "dec"], 2, "did you mean 'dce'?"),
        (["chain.hlo", "-p", "simplfy"], 2, "did you mean 'simplify'?"),
        (["chain.hlo", "--test", "true"], 2, "which pipeline?"),
        (["missing.hlo", "--passes", "dce"], 2, "missing.hlo"),
        (["chain.hlo", "--passes", "dce"], 1, "chain.hlo does not show it"),
        (["chain.hlo", "--pass-changes-result", "dce"], 1, "chain.hlo does not show it"),
        (["chain.hlo", "--passes", "dce", "--test", "false"], 1, "does not show it"),
        (["chain.hlo", "--passes", "dce", "--test", "true"], 2, "before any pass has run"),
        (["chain.hlo", "--passes", "dce", "--test", "exit 125 #"], 2, "cannot tell"),
        (["chain.hlo", "--passes", "planted-refusal", "--test", "true"], 2, "cannot tell"),
        (
            ["chain.hlo", "--passes", "dce", "--test", "true", "--reduce"],
            2,
            "--reduce needs a failure of a pass",
        ),
        (["chain.hlo", "--passes", "planted-refusal", "-o", "o.hlo"], 2, "-o needs --reduce"),
    ],
)
def test_what_cannot_be_bisected_is_said(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bisect", *arguments]) == code
    streams = capsys.readouterr()
    assert said in streams.err
    assert streams.out == ""


def test_a_flaky_predicate_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    script = f"cd {Path.cwd()}; test -e seen && rm seen || {{ touch seen; false; }} #"
    assert main(["bisect", "chain.hlo", "--passes", "planted-late", "--test", script]) == 2
    assert "the predicate is flaky" in capsys.readouterr().err


# -- handing over ---------------------------------------------------------------------------------


def test_reduce_goes_on_with_the_run_alone(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["--pass-changes-result", "dce,planted-swap", "--reduce", "-o", "small.hlo"]
    assert main(["bisect", "chain.hlo", *line]) == 0
    streams = capsys.readouterr()
    assert streams.out.startswith("pass: planted-swap")
    assert "small.hlo: 10 → 3 instructions" in streams.err
    module = parse_module(Path("small.hlo").read_text())
    assert verify_module(module) == []
    command = "hloopt opt small.hlo --passes planted-swap --validate each --check"
    assert f"to see it: {command}" in streams.err
    assert main(command.split()[1:]) == 3


def test_reduce_begins_with_the_module_that_the_run_finds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = ["--passes", "fixpoint(dce,planted-late)", "--reduce", "--format", "json"]
    assert main(["bisect", "chain.hlo", *line]) == 0
    assert json.loads(capsys.readouterr().out)["run_of_pass"] == 3
    module = parse_module(Path("chain.reduced.hlo").read_text())
    assert [i.opcode for i in module.instructions()] == [Opcode.PARAMETER, Opcode.NEGATE]
