"""Steps by XLA among other steps: shorthands, targets, limits, validation, bisection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.compilers.fake_xla import FakeXla
from tests.pass_framework.pipeline_files import check_content

from hloopt.cli import hlo_opt, main
from hloopt.diagnostics import PipelineError
from hloopt.files import read_source
from hloopt.pass_framework.base import ModulePass
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import format_passes
from hloopt.pass_framework.registry import (
    COMPILER_PASSES,
    PASSES,
    find_pass,
    pass_names,
    register_pass,
)
from hloopt.reduction.bisection import CutShort
from hloopt.reduction.predicates.modules import BreaksRule
from hloopt.reduction.predicates.passes import PassFails

Capture = pytest.CaptureFixture[str]
WHOLE = """HloModule m, num_partitions=2

ENTRY %e (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0), sharding={devices=[2]<=[2]}
  %dead = f32[8]{0} abs(%p)
  ROOT %r = f32[8]{0} negate(%p), sharding={devices=[2]<=[2]}
}
"""
PARTS = """HloModule m, num_partitions=2

ENTRY %e_spmd (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}
  %zero = f32[] constant(0)
  %zeros = f32[4]{0} broadcast(%zero), dimensions={}
  ROOT %r = f32[4]{0} subtract(%zeros, %p)
}
"""
STEP = "xla-stage{stage=spmd,target=h100_sxm}"


@pytest.fixture(autouse=True)
def xla(xla: FakeXla) -> FakeXla:
    Path("m.hlo").write_text(WHOLE, encoding="utf-8")
    xla.stages["after_spmd_partitioner"] = lambda text: PARTS
    return xla


def opt(passes: str, *more: str) -> int:
    return main(["opt", "m.hlo", "--passes", passes, "-o", "out.hlo", *more])


def steps_of(text: str) -> str:
    """The steps of a pipeline in YAML, as text for --passes."""
    Path("p.yaml").write_text(text, encoding="utf-8")
    return format_passes(find_pipeline("p.yaml").steps)


# -- values in place of options -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"xla-stage": "spmd"}, "xla-stage{stage=spmd}"),
        ({"xla-stage": {"stage": "hlo"}}, "xla-stage{stage=hlo}"),
        ({"xla": ["algsimp", "dce"]}, "xla{passes=[algsimp,dce]}"),
        ({"xla": {"passes": ["dce"], "timeout": "2min"}}, "xla{passes=[dce],timeout=2min}"),
    ],
)
def test_a_value_in_place_of_options(step: dict[str, object], text: str) -> None:
    content = {"passes": [step]}
    assert steps_of(json.dumps(content)) == text
    check_content(content)


@pytest.mark.parametrize(
    ("step", "message", "column"),
    [
        ("xla-stage: ptx", "option 'stage' takes", 16),
        ("xla-stage: [spmd]", "option 'stage' takes", 16),
        ("xla-stage: {stag: spmd}", "xla-stage' has no option 'stag'", 17),
        ("xla-stage:", "xla-stage needs a stage", 5),
        ("xla: []", "xla needs passes of XLA", 5),
        ("dce: spmd", "expected the options of 'dce' (a mapping)", 10),
    ],
)
def test_values_that_stand_for_nothing(step: str, message: str, column: int) -> None:
    with pytest.raises(PipelineError) as caught:
        steps_of(f"passes:\n  - {step}\n")
    assert message in caught.value.message
    assert caught.value.location == (2, column)


# -- targets --------------------------------------------------------------------------------------


def test_the_target_of_a_pipeline_is_that_of_its_steps_by_xla() -> None:
    text = (
        "target: b200\npasses:\n  - xla-stage: spmd\n  - xla: {passes: [dce], target: cpu}\n"
        "  - fixpoint: {passes: [xla: cse, dce]}\n  - float-normalization-bf16\n"
    )
    assert steps_of(text) == (
        "xla-stage{stage=spmd,target=b200},xla{passes=[dce],target=cpu},"
        "fixpoint(xla{passes=cse,target=b200},dce),float-normalization-bf16"
    )


def test_pipelines_within_have_the_target_of_the_next_around_them() -> None:
    Path("without.yaml").write_text("passes:\n  - xla-stage: spmd\n", encoding="utf-8")
    Path("own.yaml").write_text(
        "target: cpu\npasses:\n  - pipeline: without.yaml\n", encoding="utf-8"
    )
    text = "target: b200\npasses:\n  - pipeline: without.yaml\n  - pipeline: own.yaml\n"
    assert steps_of(text) == "xla-stage{stage=spmd,target=b200},xla-stage{stage=spmd,target=cpu}"


def test_the_step_runs_with_the_target_of_its_pipeline(xla: FakeXla, capsys: Capture) -> None:
    Path("p.yaml").write_text("target: b200\npasses:\n  - xla-stage: spmd\n", encoding="utf-8")
    assert main(["opt", "m.hlo", "-p", "p.yaml", "--remarks", "applied", "-o", "out.hlo"]) == 0
    assert read_source("out.hlo").text == PARTS
    assert "%r: the stage spmd for b200 takes its place" in capsys.readouterr().err


# -- limits and bisection -------------------------------------------------------------------------


def test_a_step_is_one_application(xla: FakeXla, capsys: Capture) -> None:
    assert opt(f"dce,{STEP}", "--opt-limit", "1") == 0
    assert "f32[8]" in read_source("out.hlo").text
    assert xla.flags == []  # nothing is compiled for nothing
    assert opt(f"dce,{STEP}", "--opt-limit", "2") == 0
    assert read_source("out.hlo").text == PARTS
    assert (
        "2 applications made, the limit of 2 is reached; the last: xla-stage: %r: the stage spmd "
        "for h100_sxm takes its place"
    ) in capsys.readouterr().err


def test_bisect_names_a_step(capsys: Capture) -> None:
    line = ["bisect", "m.hlo", "--passes", f"dce,{STEP},cse"]
    assert main([*line, "--test", "grep -q subtract {}"]) == 0
    out = capsys.readouterr().out
    assert "pass: xla-stage (its run 1, run 2 of all passes)" in out
    assert "application: 2, %r: the stage spmd for h100_sxm takes its place" in out


def test_trials_of_a_step_end_its_processes() -> None:
    assert PassFails(STEP).starts_processes
    assert not PassFails("dce").starts_processes
    rule = BreaksRule("HLO200")
    assert CutShort(f"dce,fixpoint({STEP})", rule, "trace").starts_processes
    assert not CutShort("dce", rule, "trace").starts_processes


# -- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["end", "each"])
def test_a_right_partitioning_is_validated(when: str, capsys: Capture) -> None:
    assert opt(f"{STEP},cse", "--validate", when) == 0
    assert "validated: the module computes what it did (compared" in capsys.readouterr().err


@pytest.mark.parametrize("more", [(), ("--shrink",)])
def test_a_wrong_partitioning_is_a_miscompile(
    more: tuple[str, ...], xla: FakeXla, capsys: Capture
) -> None:
    xla.stages["after_spmd_partitioner"] = lambda text: PARTS.replace("subtract", "add")
    assert opt(STEP, "--validate", "each", *more) == 3
    assert "error[HLO702]" in capsys.readouterr().err


def test_sizes_of_a_partitioning_are_not_shrunk(capsys: Capture) -> None:
    assert opt(f"{STEP},algsimp", "--validate", "each", "--shrink") == 0
    err = capsys.readouterr().err
    assert (
        err.count("not compared: smaller dimensions (--shrink): one module computes for all") == 1
    )
    assert "validated: the module computes what it did (compared" in err
    Path("m.hlo").write_text(PARTS, encoding="utf-8")
    assert opt("algsimp", "--validate", "--shrink") == 0
    assert "not compared: " not in capsys.readouterr().err


# -- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMPILER_PASSES)
def test_steps_are_listed_apart_and_described(name: str, capsys: Capture) -> None:
    assert name not in PASSES
    assert name in pass_names()
    assert find_pass(name).name == name
    assert find_pass(name).takes_target
    assert main(["passes"]) == 0
    assert f"\n{name} " in capsys.readouterr().out
    assert main(["passes", name]) == 0
    assert "the time limit of a compile" in capsys.readouterr().out
    assert hlo_opt(["--list-passes"]) == 0
    assert name not in capsys.readouterr().out.strip().split(",")


@pytest.mark.parametrize("name", COMPILER_PASSES)
def test_no_other_pass_can_have_their_names(name: str) -> None:
    class Mine(ModulePass):
        """Nothing."""

    with pytest.raises(PipelineError, match=f"'{name}' is a pass of hloopt"):
        register_pass(name)(Mine)
