"""Random programs for all passes: valid, the same each time; differences are found and shrunk."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from differential_lib.chains import LEFT_OUT, OWN_SWEEPS, Step, chain
from differential_lib.generate import program_text
from differential_lib.judge import judge
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.options import option_infos
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.registry import PASSES, create_pass, find_pass
from hloopt.passes.simplification.tuple_simplifier import TupleSimplifier
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module
from random_differential import Programs
from sweep_lib.limits import clock


def test_programs_are_valid_and_the_same_each_time() -> None:
    texts = [program_text(7, number) for number in range(60)]
    assert texts == [program_text(7, number) for number in range(60)]
    assert len(set(texts)) == len(texts)
    assert [verify_module(parse_module(text), ANY_TARGET) for text in texts] == [[]] * len(texts)


def test_programs_have_what_passes_look_for() -> None:
    programs = [program_text(3, number) for number in range(300)]
    texts = "\n".join(programs)
    wanted = (
        *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"),
        *("collective-broadcast", "all-reduce-start", "all-gather-start", "async-start", "recv"),
        *("collective-permute-start", "async-update", "call-start", "while", "conditional", "call"),
        *(
            "fusion",
            "dynamic-slice",
            "dynamic-update-slice",
            "select",
            "partition-id",
            "replica-id",
        ),
        *("outfeed", "custom-call", "sort", "map", "opt-barrier", "scaled-dot"),
    )
    assert [opcode for opcode in wanted if f" {opcode}(" not in texts] == []
    headers = set(re.findall(r"(?:replica_count|num_partitions)=(\d)", texts))
    assert headers >= {"1", "2", "3", "4"}
    assert "use_global_device_ids=true" in texts
    assert re.search(r"^HloModule m\n", texts, re.M), "no header without counts"
    assert max(text.count("while(") for text in programs) > 2


def test_chains_draw_all_passes_and_options_that_create_pass_takes() -> None:
    steps = [step for seed in range(5000) for step in chain(random.Random(seed))]
    assert {step.name for step in steps} == PASSES.keys() - OWN_SWEEPS.keys()
    for step in steps[:500]:
        create_pass(step.name, step.options)
        parse_passes(str(step), lambda name: pytest.fail(name))
    given = {(step.name, option) for step in steps for option in step.options}
    assert given.isdisjoint(LEFT_OUT)
    booleans = {
        (name, info.name)
        for name in sorted(PASSES.keys() - OWN_SWEEPS.keys())
        for info in option_infos(find_pass(name))
        if info.type is bool
    }
    assert booleans - LEFT_OUT.keys() <= given


def test_a_chain_may_be_of_one_pass_only() -> None:
    chains = [chain(random.Random(seed), "algsimp") for seed in range(50)]
    assert {tuple(step.name for step in steps) for steps in chains} == {("algsimp",)}
    assert any(steps[0].options for steps in chains)


def test_options_that_are_left_out_exist() -> None:
    for name, option in LEFT_OUT:
        assert option in {info.name for info in option_infos(find_pass(name))}


PROGRAM = """HloModule m, replica_count=2
sum { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b) }
ENTRY e {
  p = s32[4] parameter(0)
  n = s32[4] negate(p)
  k = s32[4] all-reduce(n), replica_groups={{0,1}}, to_apply=sum
  t = (s32[4], s32[4]) tuple(n, k)
  x = s32[4] get-tuple-element(t), index=0
  ROOT r = s32[4] subtract(x, k)
}
"""


def test_a_chain_that_keeps_the_values_is_equal() -> None:
    assert judge(PROGRAM, [Step("tuple-simplifier", {}), Step("dce", {})]).outcome == "equal"
    assert judge(PROGRAM, [Step("all-gather-cse", {})]).outcome == "unchanged"


def _swap(self: object, module: Module, context: object) -> bool:
    for instruction in list(module.instructions(Opcode.SUBTRACT)):
        left, right = instruction.operands
        instruction.set_operands([right, left])
    return True


def _crash(self: object, module: Module, context: object) -> bool:
    raise KeyError("planted")


def _deny(self: object, module: Module, context: object) -> bool:
    _swap(self, module, context)
    return False


@pytest.mark.parametrize(
    ("planted", "outcome", "kind"),
    [
        (_swap, "different", "tuple-simplifier: computes something else (values)"),
        (_crash, "broken", "tuple-simplifier: KeyError in"),
        (_deny, "broken", "tuple-simplifier: it does not say that it changed the module"),
    ],
)
def test_a_planted_defect_is_found_and_named(
    monkeypatch: pytest.MonkeyPatch, planted: object, outcome: str, kind: str
) -> None:
    monkeypatch.setattr(TupleSimplifier, "run", planted)
    verdict = judge(PROGRAM, [Step("dce", {}), Step("tuple-simplifier", {}), Step("cse", {})])
    assert verdict.outcome == outcome
    assert verdict.problem is not None
    assert verdict.problem.kind.startswith(kind)


def test_a_difference_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TupleSimplifier, "run", _swap)
    steps = [Step("dce", {}), Step("tuple-simplifier", {"exclude_entry_computation": True})]
    monkeypatch.setattr(Programs, "case", lambda self, number: (PROGRAM, list(steps)))
    programs = Programs(seed=0, shrinking_seconds=10)
    with clock():
        (finding,) = programs.examine(0, set()).findings
    text = finding.content.decode()
    assert "--passes 'tuple-simplifier'" in text
    assert "subtract" in text
    assert [word for word in ("tuple(", "negate", "replica_count") if word in text] == []


def test_an_invalid_program_is_a_finding() -> None:
    verdict = judge(PROGRAM.replace("s32[4] negate", "s32[5] negate"), [Step("dce", {})])
    assert verdict.outcome == "invalid"
    assert verdict.problem is not None


def sweep(root: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/random_differential.py", "--save", str(folder), *options]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_passes_keep_what_some_hundred_random_programs_compute(root: Path, tmp_path: Path) -> None:
    result = sweep(root, tmp_path, "--seed", "17", "--count", "400")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "400 programs (" in result.stdout, result.stdout
    assert "0 findings of 0 kinds" in result.stdout


@pytest.mark.slow
def test_algsimp_keeps_what_random_programs_compute(root: Path, tmp_path: Path) -> None:
    result = sweep(root, tmp_path, "--only", "algsimp", "--seed", "30", "--count", "300")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 findings of 0 kinds" in result.stdout
    assert result.stdout.count("all-reduce-folder") == 0, "only that pass is in the table"


@pytest.mark.slow
def test_a_sweep_goes_on_where_it_was(root: Path, tmp_path: Path) -> None:
    first = sweep(root, tmp_path, "--seed", "1", "--count", "20")
    assert "20 programs (" in first.stdout
    second = sweep(root, tmp_path, "--seed", "1", "--count", "30")
    assert "20 programs are done" in second.stdout
    assert "30 programs (" in second.stdout
    assert "; 10 of them now" in second.stdout
