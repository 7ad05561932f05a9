"""Passes of ours beside XLA:GPU's: chains of runs, places, verdicts, the page."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hloopt.diagnostics import HloError
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import PASSES
from pass_agreement_lib.answers import Answer, _read, _write
from pass_agreement_lib.chain import PassRun, runs_of
from pass_agreement_lib.judge import Kind, judge
from pass_agreement_lib.places import LEFT_OUT, pass_at
from pass_agreement_lib.report import CAUSES, page, read_causes, unexplained
from pass_agreement_lib.subject import _LONGEST, Case, Modules, _within_limits
from sweep_lib.findings import Finding, Problem, Progress
from sweep_lib.state import State

LINE = "I1128 03:12:43.346678   11556 hlo_pass_pipeline.cc:303] "
LOG = [
    f"{LINE}Running HLO pass pipeline on module m: outer part",
    f"{LINE}  HLO pass dce",
    f"{LINE}HLO pass: dce time: 11 us (11 us) (cumulative: 11 us)",
    f"{LINE}  HLO pass inner",
    f"{LINE}Running HLO pass pipeline on module m: inner",
    f"{LINE}  HLO pass cse",
    f"{LINE}HLO pass: cse time: 11 us (11 us) (cumulative: 11 us)",
    f"{LINE}  HLO pass dce",
    f"{LINE}HLO pass: dce time: 11 us (11 us) (cumulative: 11 us)",
    f"{LINE}Running HLO pass pipeline on module m: inner",
    f"{LINE}  HLO pass cse",
    f"{LINE}HLO pass: cse time: 11 us (11 us) (cumulative: 11 us)",
    f"{LINE}HLO pass: inner time: 22 us (22 us) (cumulative: 11 us)",
    f"{LINE}  HLO pass last",
    f"{LINE}HLO pass: last time: 22 us (22 us) (cumulative: 11 us)",
]
DUMPS = {
    "module_1.m.before_optimizations.txt": "read",
    "module_1.m.0000.outer_part.after_pipeline-start.before_dce.txt": "a",
    "module_1.m.0001.outer_part.after_dce.before_inner.txt": "b",
    "module_1.m.0002.inner.after_pipeline-start.before_cse.txt": "b",
    "module_1.m.0003.inner.after_dce.before_pipeline-end.txt": "c",
    "module_1.m.0004.inner.after_pipeline-start.before_cse.txt": "c",
    "module_1.m.0005.inner.after_cse.before_pipeline-end.txt": "d",
    "module_1.m.0006.copy-insertion.after_adding_copies.txt": "within a pass",
    "module_1.m.0007.outer_part.after_inner.before_last.txt": "d",
}


def test_runs_are_in_the_order_of_the_log_with_the_text_of_the_last_dump() -> None:
    assert runs_of(LOG, DUMPS) == [
        PassRun("outer part", "dce", "a", "b"),
        PassRun("inner", "cse", "b", "b"),
        PassRun("inner", "dce", "b", "c"),
        PassRun("inner", "cse", "c", "d"),
        PassRun("outer part", "inner", "b", "d"),
        PassRun("outer part", "last", "d", "d"),
    ]


def test_runs_before_a_failure_are_kept_and_foreign_dumps_refused() -> None:
    assert len(runs_of(LOG[:9], dict([*DUMPS.items()][:5]))) == 3
    with pytest.raises(HloError, match="4 dumps are not where the log has them: another XLA"):
        runs_of(LOG[:6], DUMPS)


def test_answers_are_read_as_they_were_written(tmp_path: Path) -> None:
    answer = Answer(runs_of(LOG, DUMPS), "it failed")
    _write(tmp_path / "a.json.gz", answer)
    assert _read(tmp_path / "a.json.gz") == answer


def test_a_place_has_the_options_of_xla() -> None:
    assert pass_at("cse", "simplification") == "cse"
    assert pass_at("cse", "fusion") == "cse{is_layout_sensitive=true}"
    assert pass_at("constant_folding", "simplification") == "constant-folding"
    assert pass_at("cse_barrier_expander", "remat-pipeline") == "cse-barrier-expander"
    assert pass_at("dce", "fusion", "HloModule m\n") == "dce"
    spmd = pass_at("dce", "fusion", "HloModule m, num_partitions=2\n")
    assert spmd == "dce{remove_cross_partition_collective_ops=true}"
    assert pass_at("layout-assignment", "layout assignment") is None
    assert pass_at("float_normalization", "post-layout_assignment") is None
    assert pass_at("float-normalization-bf16", "conv_canonicalization") is None
    for name in (*PASSES, *PRESETS, "collective-pipeliner-forward"):
        if passes := pass_at(name, "simplification"):
            parse_passes(passes, find_pipeline)
        else:
            assert name in LEFT_OUT


PROGRAM = """HloModule m

ENTRY %e (p: f32[8]) -> f32[8] {{
  %p = f32[8]{{0}} parameter(0)
{body}
}}
"""
DEAD = PROGRAM.format(body="  %a = f32[8]{0} abs(%p)\n  ROOT %r = f32[8]{0} negate(%p)")
NEGATED = PROGRAM.format(body="  ROOT %r = f32[8]{0} negate(%p)")
RENAMED = NEGATED.replace("%r", "%s")
ANNOTATED = PROGRAM.format(body='  ROOT %r = f32[8]{0} negate(%p), frontend_attributes={a="b"}')
SUBTRACTED = PROGRAM.format(
    body="  %z = f32[] constant(-0)\n  %b = f32[8]{0} broadcast(%z), dimensions={}\n"
    "  ROOT %r = f32[8]{0} subtract(%b, %p)"
)
OTHER = NEGATED.replace("negate", "abs")


@pytest.mark.parametrize(
    ("before", "after", "kind", "only"),
    [
        (NEGATED, NEGATED, Kind.NEITHER, ""),
        (DEAD, NEGATED, Kind.TEXT, ""),
        (DEAD, RENAMED, Kind.NAMES, ""),
        (DEAD, ANNOTATED, Kind.ANNOTATIONS, ""),
        (DEAD, SUBTRACTED, Kind.EQUIVALENT, ""),
        (DEAD, DEAD, Kind.EQUIVALENT, "ours"),
        (NEGATED, SUBTRACTED, Kind.EQUIVALENT, "XLA"),
        (DEAD, OTHER, Kind.DIFFERENT, ""),
        (DEAD, "HloModule m\n", Kind.UNKNOWN, ""),
    ],
)
def test_verdicts(before: str, after: str, kind: Kind, only: str) -> None:
    judged = judge(PassRun("simplification", "dce", before, after), "dce")
    assert (judged.kind, judged.only) == (kind, only)
    assert bool(judged.reason) == (kind in (Kind.DIFFERENT, Kind.UNKNOWN))


def test_a_pass_of_ours_may_fail_on_an_invalid_module() -> None:
    text = NEGATED.replace("negate(%p)", "call(%p), to_apply=%f").replace(
        "ENTRY",
        "%f (x: f32[8], y: f32[8]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n"
        "  ROOT %y = f32[8]{0} parameter(1)\n}\n\nENTRY",
    )
    judged = judge(PassRun("optimization", "call-inliner", text, NEGATED), "call-inliner")
    assert judged.kind is Kind.UNKNOWN
    assert judged.reason.startswith("XLA's pass was given an invalid module: ")


@pytest.fixture
def modules(tmp_path: Path) -> Modules:
    """A corpus of one module, of which the compiler is known to have made something."""
    place = tmp_path / "corpus" / "modules" / "some_test"
    place.mkdir(parents=True)
    (place / "Dead.0.hlo").write_text(DEAD)
    return Modules(0, tmp_path, "")


def examined(modules: Modules, *runs: PassRun) -> Progress:
    modules._answers = {0: Answer([*runs], "")}
    return modules.examine(0, set())


def test_all_runs_count_and_a_difference_is_found_once(modules: Modules) -> None:
    wrong = PassRun("simplification", "dce", DEAD, OTHER)
    foreign = PassRun("simplification", "layout-assignment", DEAD, OTHER)
    right = PassRun("simplification", "dce", DEAD, NEGATED)
    progress = examined(modules, wrong, wrong, foreign, right, right._replace(after="?"))
    assert progress.outcomes == {
        "compiled": 1,
        "dce|different": 2,
        "dce|equal text": 1,
        "dce|cannot be told": 1,
        "unknown: expected an opcode, found …": 1,
    }
    (found,) = progress.findings
    assert found.problem.kind.startswith("different | dce | some_test/Dead.0 | output[0] ")
    assert found.content.decode().count("HloModule") == 3


def state_of(progress: Progress, path: Path) -> State:
    state = State(path, "test")
    state.add(range(1), progress)
    return state


def test_the_page_has_all_counts_and_causes(modules: Modules, tmp_path: Path) -> None:
    causes_file = tmp_path / "causes.yaml"
    state = state_of(
        examined(modules, PassRun("simplification", "dce", DEAD, OTHER)), tmp_path / "state"
    )
    causes_file.write_text("")
    causes = read_causes(causes_file)
    assert [case.module for case in unexplained(state, causes)] == ["some_test/Dead.0"]
    parts = page(state, causes, {"ours": "1"})
    assert parts["totals"] == "1 run of 1 pass: 1 different."
    assert "| dce | 1 |  |  |  |  |  | 1 |  |  |  |" in parts["passes"]
    assert parts["differences"].startswith("- **Not explained**, different, dce, some_test/Dead.0:")
    causes_file.write_text(
        "- cause: XLA is wrong\n  kind: different\n  passes: dce cse\n  modules: some_*/*\n"
    )
    causes = read_causes(causes_file)
    assert unexplained(state, causes) == []
    line = "- XLA is wrong (different, 1 case, dce: some_test/Dead.0)"
    assert page(state, causes, {})["differences"] == line


def test_causes_are_refused_without_a_kind(tmp_path: Path) -> None:
    assert read_causes(CAUSES) is not None
    (tmp_path / "c.yaml").write_text("- cause: some\n")
    with pytest.raises(HloError, match="an entry needs `cause` and `kind`, one of"):
        read_causes(tmp_path / "c.yaml")


def test_a_case_is_read_back_and_other_findings_are_none() -> None:
    case = Case("different", "dce", "a/b.0", "why | so")
    assert Case.of(case.text) == case
    assert Case.of("the process hangs") is None
    progress = Progress(1, Counter(lost=1), [Finding(0, Problem("the process hangs", ""), b"")])
    assert progress.findings[0].problem.kind == "the process hangs"


def test_the_tool_asks_for_a_compiler(root: Path) -> None:
    tool = [sys.executable, str(root / "tools" / "pass_agreement.py")]
    refused = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--shared and --ask are needed" in refused.stderr


def test_a_text_that_is_too_long_is_not_read() -> None:
    run = PassRun("pipeline", "dce", "x" * (_LONGEST + 1), "")
    judged = _within_limits(run, "dce")
    assert judged.kind is Kind.UNKNOWN
    assert judged.reason == "beyond the limits: a text of more than 64,000,000 characters"
    assert _within_limits(run._replace(before="x"), "dce").reason != judged.reason
