"""tools/pass_answers.py: valid programs, verdicts on answers, the table of them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import verify_module
from pass_agreement_lib.chain import PassRun
from pass_agreement_lib.judge import Kind
from pass_agreement_lib.places import name_of, pass_at
from pass_answers_lib.generated import GENERATED
from pass_answers_lib.report import causes_of, programs_of, row, table
from pass_answers_lib.subject import (
    CHANGED,
    DIED,
    EQUAL,
    EXPLAINED,
    LOST,
    WRONG,
    CpuAnswer,
    Programs,
)
from sweep_lib.findings import Progress


def programs(name: str) -> Programs:
    return Programs(0, Path(), "", pass_name=name)


def printed(text: str) -> str:
    return print_module(parse_module(text), PrintOptions.default())


def after_ours(name: str, text: str) -> str:
    module = parse_module(text)
    passes = name_of(pass_at(name.partition("@")[0], "") or "")
    if options := GENERATED[name].options:
        passes = f"{passes}{{{options}}}"
    PipelineRunner().run(parse_passes(passes, find_pipeline), module)
    return print_module(module, PrintOptions.default())


def judged(name: str, before: str, after: str, number: int = 0) -> Progress:
    """The verdict where the compiler makes `after` of a program."""
    subject = programs(name)
    plain, _, place = name.partition("@")
    step = PassRun("p", plain, before, after)
    subject._answers[number] = CpuAnswer([step] * int(place or 1))
    return subject.examine(number, set())


REFUSE_LITTLE = (
    *("batchnorm_expander", "gather_simplifier", "select_and_scatter_expander"),
    *("scatter_simplifier", "sharding-remover", "topk-decomposer"),
)
"""Passes that replace nearly all operations of a kind."""


@pytest.mark.parametrize("name", GENERATED)
def test_programs_are_valid_and_both_changed_and_left_alone(name: str) -> None:
    changed = Counter[bool]()
    for number in range(40):
        text = programs(name).text(number)
        assert not verify_module(parse_module(text)), text
        changed[after_ours(name, text) != printed(text)] += 1
    assert changed[True] >= 3
    assert changed[False] >= 3 or name in REFUSE_LITTLE
    assert programs(name).text(1) == programs(name).text(1) != Programs(1, Path(), "", name).text(1)


@pytest.mark.parametrize("name", GENERATED)
def test_our_own_results_are_equal(name: str) -> None:
    for number in range(5):
        before = printed(programs(name).text(number))
        found = judged(name, before, after_ours(name, before)).outcomes
        assert found[EQUAL] == 1, number
        assert found[CHANGED] == (after_ours(name, before) != before)


DOT = """HloModule m
ENTRY e {
  a = f32[2,3,4]{2,1,0} parameter(0)
  b = f32[2,3,4]{2,1,0} parameter(1)
  c = f32[] parameter(2)
  ROOT d = f32[2,3]{1,0} dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, %s
}
"""
CONTRACTING = "lhs_contracting_dims={2}, rhs_contracting_dims={2}"
MERGER = "dot_dimension_merger"


def test_what_nothing_reads_does_not_count() -> None:
    before = printed(DOT % CONTRACTING)
    after = after_ours(MERGER, before).replace("ROOT", "%unread = f32[] negate(%c)\n  ROOT")
    assert judged(MERGER, before, after).outcomes[EQUAL] == 1


def test_a_difference_with_a_cause_is_explained_another_is_found() -> None:
    controlled = printed(DOT % f"{CONTRACTING}, control-predecessors={{c}}")
    found = judged(MERGER, controlled, controlled)
    assert found.outcomes[EXPLAINED] == 1
    assert not found.findings
    before = printed(DOT % CONTRACTING)
    found = judged(MERGER, before, before)
    assert found.outcomes == {"equivalent": 1}
    assert found.findings[0].problem.kind == f"equivalent, {MERGER}, program 0"


TOPK = """HloModule m
ENTRY e {
  p = bf16[4]{0} parameter(0)
  c = bf16[4]{0} copy(p)
  ROOT t = (bf16[2]{0}, s32[2]{0}) topk(p), k=2, largest=true
}
"""


@pytest.mark.parametrize(("kind", "is_explained"), [(Kind.EQUIVALENT, 1), (Kind.UNKNOWN, 0)])
def test_what_an_operation_became_is_explained_where_both_ran(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, is_explained: int
) -> None:
    ours = printed(TOPK.replace("topk(p)", "topk(c)"))
    monkeypatch.setattr(
        "pass_answers_lib.subject.judge",
        lambda run, passes: SimpleNamespace(kind=kind, reason="why", ours=ours),
    )
    before = printed(TOPK)
    found = judged("topk-decomposer", before, before)
    assert found.outcomes[EXPLAINED] == is_explained
    assert len(found.findings) == 1 - is_explained


def test_a_wrong_result_of_xla_is_explained_and_one_of_ours_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = printed(DOT % CONTRACTING)
    wrong = after_ours(MERGER, before).replace("dot(%reshape, ", "dot(%reshape.1, ")
    assert judged(MERGER, before, wrong).outcomes[f"{EXPLAINED}: {WRONG}"] == 1
    monkeypatch.setattr(
        "pass_answers_lib.subject.judge",
        lambda run, passes: SimpleNamespace(kind="different", reason="why", ours=wrong),
    )
    found = judged(MERGER, before, before)
    assert not found.outcomes[EXPLAINED]
    assert found.findings[0].problem.details.startswith("why")


SORTED = """HloModule m
ENTRY e {
  a = f32[2,3,4]{2,1,0} parameter(0)
  b = f32[4,2,3]{2,1,0} parameter(1)
  ROOT d = f32[] dot(a, b), lhs_contracting_dims={%s}, rhs_contracting_dims={%s}
}
"""


def test_a_cycle_that_xla_leaves_unsorted_is_explained_another_order_is_not() -> None:
    name = "dot_dimension_sorter"
    before, cycle = printed(SORTED % ("1,2,0", "2,0,1")), printed(SORTED % ("2,0,1", "0,1,2"))
    assert judged(name, before, cycle).outcomes[EXPLAINED] == 1
    short = SORTED.replace("f32[]", "f32[4,4]")
    before = printed(short % ("1,0", "2,1"))
    assert judged(name, before, before).outcomes["equivalent"] == 1


TWO = """HloModule m
ENTRY e {
  a = f32[4,4]{1,0} parameter(0)
  b = f32[4,4]{1,0} parameter(1)
  c = f32[4,2]{1,0} parameter(2)
  d = f32[4,4]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[4,2]{1,0} dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[4,4]{1,0}, f32[4,2]{1,0}) tuple(d, f)
}
"""


@pytest.mark.parametrize(
    ("name", "before", "old", "new", "cause"),
    [
        (
            "gather_expander",
            "n = f32[5,3]{1,0} negate(x) ROOT m = f32[5,3]{1,0} negate(n)",
            *("%n = f32[5,3]{1,0}", "%n = f32[5,3]{0,1}", "layouts of what is made differ"),
        ),
        (
            "gather_expander",
            "n = f32[5,3]{1,0} negate(x) m = f32[5,3]{1,0} negate(x) "
            "ROOT t = (f32[5,3]{1,0}, f32[5,3]{1,0}) tuple(n, m)",
            *("%n, %m", "%n, %n", "XLA makes a value twice that ours makes once"),
        ),
    ],
)
def test_layouts_and_copies_are_explained_anywhere(
    name: str, before: str, old: str, new: str, cause: str
) -> None:
    text = "HloModule m\nENTRY e { x = f32[5,3]{1,0} parameter(0) i = s32[1]{0} parameter(1) "
    given = printed(f"{text}{before} }}")
    after = after_ours(name, given)
    assert old in after
    found = judged(name, given, after.replace(old, new)).outcomes
    assert [key for key in found if key.startswith(f"{EXPLAINED}: {cause}")]


def test_dots_that_xla_merges_otherwise_are_explained() -> None:
    before = printed(TWO)
    found = judged("dot-merger", before, before).outcomes
    assert [key for key in found if key.startswith(f"{EXPLAINED}: ours, as newer XLA")]
    after = after_ours("dot-merger", before)
    longer = after.replace("[0:4], [0:4]}", "[0:4:1], [0:4:1]}").replace(
        "ROOT", "%z = f32[4,2]{1,0} negate(%c)\n  ROOT"
    )
    assert judged("dot-merger", before, longer).outcomes[EQUAL] == 1


def test_a_program_without_an_answer_is_found() -> None:
    subject = programs(MERGER)
    subject._answers[0] = SimpleNamespace(steps=[], error="it died")
    found = subject.examine(0, set())
    assert found.outcomes == {LOST: 1}
    assert found.findings[0].problem.details == "it died"


def test_a_program_that_ends_xla_is_not_found() -> None:
    subject = programs(MERGER)
    subject._answers[0] = CpuAnswer([], "exit -6", is_dead=True)
    found = subject.examine(0, set())
    assert found.outcomes == {DIED: 1}
    assert not found.findings


class NoAnswer(Exception):
    """An error of the script that asks XLA:CPU."""

    kind = "crash"


def test_xla_for_cpus_is_asked_for_the_pass_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def passes(text: str, only_changed: bool, only: list[str]) -> list[dict[str, str]]:
        if text == subject.text(1):
            raise NoAnswer("exit -6")
        step = {"pipeline": "p", "pass": only[0], "before": text, "after": text}
        return [step, {"error": f"{only_changed}"}]

    driver = SimpleNamespace(passes=passes, OracleError=NoAnswer)
    monkeypatch.setattr("pass_answers_lib.subject.oracle_script", lambda *_: driver)
    name = "convolution-group-converter"
    subject = programs(f"{name}@2")
    text = subject.text(0)
    first, second = subject.ask_block(range(2))
    assert first == CpuAnswer([PassRun("p", name, text, text)], "False")
    assert second == CpuAnswer([], "exit -6", is_dead=True)


def test_the_compiler_is_asked_for_the_pass_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def compile_many(texts: list[str], **options: Any) -> list[str]:
        asked.update(options)
        return texts

    driver = SimpleNamespace(compile_many=compile_many)
    monkeypatch.setattr("pass_answers_lib.subject.oracle_script", lambda *_: driver)
    subject = programs("dot-merger")
    assert subject.ask_block(range(3, 5)) == [subject.text(3), subject.text(4)]
    assert asked["only"] == ["dot-merger"]
    assert asked["flags"] == ("--xla_gpu_dot_merger_threshold_mb=1",)


def test_the_table_counts_programs_once() -> None:
    outcomes = Counter(
        {CHANGED: 3, EQUAL: 4, EXPLAINED: 2, f"{EXPLAINED}: b": 1, f"{EXPLAINED}: a": 1, LOST: 1}
    )
    assert programs_of(outcomes) == 7
    assert row("x_y", outcomes) == (
        "x_y: 3 changed by XLA, 4 equal, 2 explained, 0 XLA died, 1 without an answer"
    )
    lines = table({"x_y": outcomes, "a": Counter({EQUAL: 1})}).splitlines()
    assert lines[2:] == ["| a | 1 |  | 1 |  |  |  |", "| x-y | 7 | 3 | 4 | 2 |  | 1 |"]
    assert causes_of({"x_y": outcomes}) == "- x-y: a (1 program).\n- x-y: b (1 program)."
    assert causes_of({}) == "None."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--passes", "dce"], "no programs for dce; there are some for collective-quantizer, "),
        ([], "--shared and --ask are needed"),
    ],
)
def test_the_tool_refuses(arguments: list[str], message: str, root: Path) -> None:
    tool = [sys.executable, str(root / "tools" / "pass_answers.py"), *arguments]
    refused = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_the_tool_shows_a_program(root: Path) -> None:
    tool = [sys.executable, str(root / "tools" / "pass_answers.py"), "--passes", MERGER]
    done = subprocess.run([*tool, "--show", "3"], capture_output=True, text=True, check=True)
    assert done.stdout == programs(MERGER).text(3)
