"""`hloopt reduce --xla-flags-differ`: programs that flags of XLA change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.compilers.fake_xla import FakeXla, install

from hloopt.cli import main
from hloopt.files import load, read_source

Capture = pytest.CaptureFixture[str]
STEP = """HloModule step

ENTRY %e (x: f32[4], y: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %y = f32[4]{0} parameter(1)
  %sum = f32[4]{0} add(%x, %y)
  %n = f32[4]{0} negate(%sum)
  %t = f32[4]{0} tanh(%n)
  ROOT %out = f32[4]{0} multiply(%t, %x)
}
"""
LINE = ["reduce", "step.hlo", "--xla-flags-differ", "xla_a=1", "xla_a=1 xla_b"]
H100 = ["--target", "h100_sxm"]


@pytest.fixture
def xla(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeXla:
    """A compiler that under `xla_b` takes negate for abs."""
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(STEP, encoding="utf-8")
    fake = install(monkeypatch, tmp_path)

    def wrong_under_b(text: str) -> str:
        return re.sub(r"\bnegate\(", "abs(", text) if "--xla_b=" in fake.flags[-1] else text

    fake.cse = wrong_under_b
    return fake


@pytest.mark.usefixtures("xla")
def test_the_smallest_program_whose_results_differ(capsys: Capture) -> None:
    assert main([*LINE, *H100, "-o", "small.hlo"]) == 0
    small = load("small.hlo")
    assert small.entry.root.opcode.value == "negate"
    assert small.instruction_count() == 2
    again = "hloopt reduce small.hlo --xla-flags-differ xla_a=1 'xla_a=1 xla_b=true'"
    assert f"// To see it: {again} --target h100_sxm --plugin " in read_source("small.hlo").text
    assert main([LINE[0], "small.hlo", *LINE[2:], *H100, "--check"]) == 0


@pytest.mark.usefixtures("xla")
def test_programs_whose_results_do_not_differ_are_told(capsys: Capture) -> None:
    Path("step.hlo").write_text(STEP.replace("negate", "exponential"), encoding="utf-8")
    assert main([*LINE, *H100]) == 2
    err = capsys.readouterr().err
    assert (
        "step.hlo does not show it: in 3 trials it was not so that XLA's results for h100_sxm "
        "differ under the flags xla_a=1 'xla_a=1 xla_b=true'"
    ) in err
    assert main([*LINE, *H100, "--check"]) == 1


def test_calls_that_the_interpreter_does_not_know_are_no_verdict(
    xla: FakeXla, capsys: Capture
) -> None:
    xla.cse = lambda text: text.replace(" tanh(%n)", ' custom-call(%n), custom_call_target="fast"')
    assert main([*LINE, *H100]) == 2
    err = capsys.readouterr().err
    assert "the predicate cannot tell: what XLA made for h100_sxm cannot be compared: " in err
    assert 'nothing is known of the custom call target "fast"' in err


def test_flags_that_xla_does_not_know(xla: FakeXla, capsys: Capture) -> None:
    xla.unknown.add("xla_b")
    assert main([*LINE, *H100]) == 2
    assert "this XLA does not know xla_b=true" in capsys.readouterr().err


@pytest.mark.usefixtures("xla")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--xla-flags-differ", "xla_a", "xla_a=true"], "the flags are the same"),
        (["--xla-flags-differ", "", "a b"], "'a' is no flag of XLA"),
        (["--xla-flags-differ", "", "xla_dump_to=x"], "xla_dump_to is not free here"),
        (["--xla-flags-differ", "", "xla_a", "--target", "h101"], "no target 'h101'"),
        (["--xla-flags-differ", "", "xla_a", "--xla-crashes", "cpu"], "one failure at a time"),
        (["--xla-flags-differ", "", "xla_a", "--flag", "xla_c"], "--flag is about --xla-crashes"),
        (["--verify-error", "HLO203", *H100], "--target is about --xla-flags-differ"),
    ],
)
def test_mistakes(line: list[str], message: str, capsys: Capture) -> None:
    assert main(["reduce", "step.hlo", *line]) == 2
    assert message in capsys.readouterr().err
