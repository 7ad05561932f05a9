"""`hloopt reduce --xla-crashes`: programs that a compiler of XLA refuses or dies of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.compilers.fake_xla import install

from hloopt.cli import main
from hloopt.compilers import compiling
from hloopt.compilers.child import Ending
from hloopt.files import load
from hloopt.proto import decode

Capture = pytest.CaptureFixture[str]
STEP = """HloModule step

ENTRY %e (x: f32[4], y: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %y = f32[4]{0} parameter(1)
  %sum = f32[4]{0} add(%x, %y)
  %e1 = f32[4]{0} exponential(%sum)
  %n = f32[4]{0} negate(%e1)
  %t = f32[4]{0} tanh(%n)
  ROOT %out = f32[4]{0} multiply(%t, %x)
}
"""
LINE = ["reduce", "step.hlo", "--xla-crashes", "h100_sxm"]


@pytest.fixture
def xla(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A compiler that dies of exponentials, and refuses programs without a tanh."""
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(STEP, encoding="utf-8")
    fake = install(monkeypatch, tmp_path)

    def run_child(
        module: str,
        job: Path,
        answer: Path,
        log: Path,
        environment: Mapping[str, str],
        seconds: float | None,
        is_enough: Callable[[], bool],
    ) -> Ending:
        program = decode((job.parent / "program").read_bytes())
        names = {each.opcode.value: each.name for each in program.instructions()}
        if "exponential" in names:
            message = f"Check failed: no %{names['exponential']} here"
            log.write_text(f"F1127 1:1:1.0 1 emitter.cc:7] {message}\n", encoding="utf-8")
            return Ending(None, -6, False)
        if "tanh" not in names:
            log.write_text("")
            refused = {"refused": "INTERNAL: there is no tanh"}
            answer.write_text(json.dumps(refused), encoding="utf-8")
            return Ending(refused, 0, False)
        arguments = module, job, answer, log, environment, seconds, is_enough
        return fake.run_child(*arguments)

    monkeypatch.setattr(compiling, "run_child", run_child)


@pytest.mark.usefixtures("xla")
def test_the_smallest_program_that_a_compiler_dies_of(capsys: Capture) -> None:
    assert main([*LINE, "-o", "small.hlo"]) == 0
    small = load("small.hlo")
    assert small.instruction_count() == 2  # what is refused is another failure
    assert small.entry.root.opcode.value == "exponential"
    text = Path("small.hlo").read_text(encoding="utf-8")
    assert "hloopt xla compile small.hlo --target h100_sxm" in text
    assert main(["reduce", "small.hlo", "--xla-crashes", "h100_sxm", "--check"]) == 0


@pytest.mark.usefixtures("xla")
def test_a_program_that_compiles_does_not_show_it(capsys: Capture) -> None:
    Path("step.hlo").write_text(STEP.replace("exponential", "sine"), encoding="utf-8")
    assert main([*LINE, "--check"]) == 1


@pytest.mark.usefixtures("xla")
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--flag", "no"], "'no' is no flag of XLA"),
        (["--plugin", "none.so"], "no plug-in none.so"),
        (["--differs-on", "xla"], "one failure at a time"),
    ],
)
def test_mistakes(more: list[str], message: str, capsys: Capture) -> None:
    assert main([*LINE, *more]) == 2
    assert message in capsys.readouterr().err
    assert main(["reduce", "step.hlo", "--verify-error", "HLO203", "--flag", "xla_a"]) == 2
    assert "--flag is about --xla-crashes" in capsys.readouterr().err
