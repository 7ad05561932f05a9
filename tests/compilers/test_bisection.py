"""`hloopt xla bisect`: a pass that computes something else is found, whatever else is there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compilers.fake_xla import LOG, MODULE, FakeXla

from hloopt.cli import main
from hloopt.compilers.bisection import Judged, Verdict, find, pass_of
from hloopt.dumps.chain import Chain, Effect, Step
from hloopt.dumps.folder import Compilation
from hloopt.dumps.names import Phase, Stage, parse_name
from hloopt.files import load, read_source

Capture = pytest.CaptureFixture[str]
LINE = ["xla", "bisect", "m.hlo", "--target", "h100_sxm"]
EQUAL, DIFFERENT, UNKNOWN = Verdict.EQUAL, Verdict.DIFFERENT, Verdict.UNKNOWN


def wrong(text: str) -> str:
    return text.replace("negate(%p)", "abs(%p)")


# -- the command ----------------------------------------------------------------------------------


def test_a_pass_that_computes_something_else(xla: FakeXla, capsys: Capture) -> None:
    xla.cse = wrong
    assert main([*LINE, "-o", "bug"]) == 1
    captured = capsys.readouterr()
    pass_line, difference, alone, extent = captured.out.splitlines()
    assert pass_line == "pass: cse, in tidy, dump 0002"
    assert difference.startswith("difference: output[0] was ")
    assert alone == "alone: the pass reproduces it, run 1 of 1"
    assert extent == "2 of 2 stages that changed the program were judged"
    assert "negate" in read_source("bug/before.hlo").text
    assert "abs" in read_source("bug/after.hlo").text
    assert (
        "to see it: hloopt xla isolate bug/before.hlo --pass cse --place 1 --target h100_sxm"
        in captured.err
    )
    flags = [dict(f.split("=", 1) for f in line.split()) for line in xla.flags]
    assert len(flags) == 3
    assert {each["--xla_dump_large_constants"] for each in flags} == {"true"}


def test_the_module_before_repeats_it_as_a_golden_test(xla: FakeXla, capsys: Capture) -> None:
    xla.cse = wrong
    assert main([*LINE, "-o", "bug/"]) == 1
    text = Path("bug/before.hlo").read_text(encoding="utf-8")
    assert "\n// Compiler: fake_plugin.so\n" in text
    assert "// XLA_FLAGS: --xla_gpu_autotune_level=0" in text
    assert "xla_dump" not in text.partition("HloModule")[0].partition("XLA_FLAGS")[2]
    assert load("bug/before.hlo").name == "m"
    assert main(["test", "bug/before.hlo"]) == 1  # as long as the pass is wrong
    assert "hloopt ended with exit code 1" in capsys.readouterr().out
    xla.cse = str
    assert main(["test", "bug/before.hlo"]) == 0


def test_a_pass_that_does_not_show_it_alone(xla: FakeXla, capsys: Capture) -> None:
    xla.cse = lambda text: wrong(text) if len(xla.flags) == 1 else text
    assert main([*LINE, "-o", "bug"]) == 1
    captured = capsys.readouterr()
    assert "alone: the pass does not reproduce it: alone it leaves the module" in captured.out
    assert "hloopt equivalent bug/before.hlo bug/after.hlo --preserves precision" in captured.err
    assert main(["test", "bug/before.hlo"]) == 1


def test_a_pass_that_cannot_run_alone(xla: FakeXla, capsys: Capture) -> None:
    def without_log(text: str) -> str:
        xla.log = ""  # from the second compile on no pass runs
        return wrong(text)

    xla.cse = without_log
    assert main(LINE) == 1
    captured = capsys.readouterr()
    assert "alone: cannot tell: it cannot be run alone: XLA does not run a pass" in captured.out
    assert "-o DIR/ writes the modules before and after" in captured.err


def test_passes_that_compute_the_same(xla: FakeXla, capsys: Capture) -> None:
    xla.cse = lambda text: text.replace("negate(%p)", "negate(%r.1)").replace(
        "  ROOT", "  %r.1 = f32[8]{0} copy(%p)\n  ROOT"
    )
    assert main(LINE) == 0
    assert capsys.readouterr().out == "equal: 2 of 2 stages that changed the program were judged\n"
    assert len(xla.flags) == 1


def test_a_stage_that_cannot_run_is_named_and_not_equal(xla: FakeXla, capsys: Capture) -> None:
    xla.cse = lambda text: text.replace("negate(%p)", "nonsense(%p)")
    assert main(LINE) == 0
    out = capsys.readouterr().out
    assert "equal: 1 of 2 stages" in out
    assert "not judged: 0002 tidy: cse: it cannot be read: " in out
    xla.dead = ""
    assert main(LINE) == 2
    assert "cannot tell: no stage can be judged" in capsys.readouterr().out


def test_a_program_that_does_not_run(xla: FakeXla, capsys: Capture) -> None:
    Path("m.hlo").write_text(MODULE.replace("f32[8]", "f32[99999999999]"), encoding="utf-8")
    assert main(LINE) == 2
    assert "cannot tell: first stage: " in capsys.readouterr().out


def test_json(xla: FakeXla, capsys: Capture) -> None:
    xla.cse = wrong
    assert main([*LINE, "--format", "json", "-o", "bug"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["pass"]) == ("found", "cse")
    assert [each["verdict"] for each in found["judged"]] == ["equal", "different"]
    assert (found["alone"]["verdict"], found["alone"]["place"]) == ("different", 1)
    assert found["assumes_persistence"] is False
    assert found["command"].startswith("hloopt xla isolate bug/before.hlo --pass cse")


def test_a_compile_that_fails(xla: FakeXla, capsys: Capture) -> None:
    xla.answer, xla.ending, xla.log = None, (-6, False), LOG
    xla.is_reported = False
    assert main(LINE) == 3
    assert "error[HLO704]" in capsys.readouterr().err


# -- the search -----------------------------------------------------------------------------------


def chain_of(effects: Sequence[Effect]) -> Chain:
    stages = [
        Stage(Phase.PASSES, number, "pipeline", f"p{number}", f"p{number + 1}")
        for number in range(len(effects))
    ]
    compilation = Compilation("", "", "", "", "", 0, "m")
    steps = [Step(n, stages[n], f"{n}", effect, None) for n, effect in enumerate(effects)]
    return Chain(compilation, steps)


@given(st.lists(st.sampled_from([EQUAL, DIFFERENT, UNKNOWN, None]), max_size=12))
def test_what_is_found_is_between_an_equal_and_a_different_stage(
    verdicts: list[Verdict | None],
) -> None:
    """None is for a dump that leaves the program as it is."""
    effects = [Effect.FIRST, *(Effect.TEXT if v is None else Effect.PROGRAM for v in verdicts)]
    asked: list[int] = []

    def judge(step: Step) -> Judged:
        asked.append(step.number)
        return Judged(step, ([EQUAL, *verdicts][step.number]) or EQUAL)

    found = find(chain_of(effects), judge)
    assert len(asked) == len(set(asked))
    known = [v for v in verdicts if v in (EQUAL, DIFFERENT)]
    if DIFFERENT not in known:
        has_programs = any(v is not None for v in verdicts)
        assert found.verdict is (UNKNOWN if has_programs and not known else EQUAL)
        assert {each.step.number for each in found.skipped} == {
            number for number, v in enumerate(verdicts, 1) if v is UNKNOWN
        }
        return
    assert found.verdict is DIFFERENT
    if found.is_halved:
        assert known[-1] is DIFFERENT
        assert len(found.judged) < found.programs
    numbers = [step.number for step in found.suspects]
    *between, last = (verdicts[number - 1] for number in numbers)
    assert last is DIFFERENT
    assert set(between) <= {UNKNOWN}
    assert found.before is not None
    assert found.before.number == numbers[0] - 1
    earlier = [v for v in verdicts[: numbers[0] - 1] if v is not None]
    assert not earlier or earlier[-1] is EQUAL
    if known[-1] is EQUAL:
        assert DIFFERENT not in earlier


@pytest.mark.parametrize("culprit", range(1, 33))
def test_a_difference_that_persists_takes_a_logarithm_of_comparisons(culprit: int) -> None:
    count = 0

    def judge(step: Step) -> Judged:
        nonlocal count
        count += 1
        return Judged(step, DIFFERENT if step.number >= culprit else EQUAL)

    found = find(chain_of([Effect.FIRST, *[Effect.PROGRAM] * 32]), judge)
    assert [step.number for step in found.suspects] == [culprit]
    assert count <= 7  # the first, the last, and the logarithm


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("module_0.m.0003.tidy.after_cse.before_dce.txt", "cse"),
        ("module_0.m.0003.tidy.after_cse.before_pipeline-end.txt", "cse"),
        ("module_0.m.0003.tidy.after_pipeline-start.before_dce.txt", None),
        ("module_0.m.0003.copy-insertion.after_adding_special-case_copies.txt", "copy-insertion"),
        ("module_0.m.sm_9.0_gpu_after_optimizations.txt", None),
    ],
)
def test_the_pass_that_made_a_dump(name: str, expected: str | None) -> None:
    found = parse_name(name)
    assert found is not None
    assert found.stage is not None
    assert pass_of(Step(1, found.stage, name, Effect.PROGRAM, None)) == expected
