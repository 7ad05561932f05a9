"""The sweep of every pass alone and of both pipelines: its cases, its devices, what it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.equivalence import Reference
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import PASSES
from hloopt.pass_framework.runner import restore
from hloopt.pass_framework.shipped import pipeline_names
from hloopt.passes.simplification.tuple_simplifier import TupleSimplifier
from hloopt.text import parse_module
from pass_sweep import Modules, module_files, table
from pass_sweep_lib.cases import Case, all_cases
from pass_sweep_lib.judge import Bench
from pass_sweep_lib.modules import other_grids, prepared
from sweep_lib.findings import Progress
from sweep_lib.limits import clock

PROGRAM = """HloModule m, replica_count=2

sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}

ENTRY e {
  p = s32[4] parameter(0)
  n = s32[4] negate(p)
  k = s32[4] all-reduce(n), replica_groups={}, to_apply=sum
  t = (s32[4], s32[4]) tuple(p, k)
  x = s32[4] get-tuple-element(t), index=0
  ROOT r = s32[4] subtract(x, k)
}
"""
ALONE = """HloModule m

ENTRY e {
  p = s32[4] parameter(0)
  t = (s32[4]) tuple(p)
  x = s32[4] get-tuple-element(t), index=0
  ROOT r = s32[4] subtract(x, p)
}
"""
SIMPLIFIER = Case("tuple-simplifier", "tuple-simplifier")


def test_there_is_a_case_for_each_pass_and_pipeline() -> None:
    names = {case.name for case in all_cases()}
    pipelines = {f"pipeline({name})" for name in pipeline_names()}
    assert {"pipeline(xla-cpu-simplification)", "pipeline(xla-gpu-optimization)"} < pipelines
    assert names == PASSES.keys() | PRESETS.keys() | pipelines
    assert len({case.passes for case in all_cases()}) == len(all_cases())
    for case in all_cases():
        assert case.pipeline.steps, case


def test_collectives_run_on_all_counts_of_devices_that_their_groups_allow() -> None:
    assert grids_of(PROGRAM) == {(1, 1), (1, 2), (2, 2), (4, 1), (1, 4)}
    named = PROGRAM.replace("replica_groups={}", "replica_groups={{0,1}}")
    assert {(1, 1), (4, 1)}.isdisjoint(grids_of(named))
    assert (2, 2) in grids_of(named)


def test_modules_that_exchange_nothing_run_on_two_and_four_devices_in_turn() -> None:
    assert grids_of(ALONE, 0) == {(2, 1)}
    assert grids_of(ALONE, 1) == {(1, 4)}


def grids_of(text: str, number: int = 0) -> set[tuple[int, int]]:
    found = dict(other_grids(text, number))
    for grid, put in found.items():
        module = parse_module(put)
        assert (module.replica_count, module.num_partitions) == grid
    return set(found)


def test_what_a_pass_wants_comes_before_it() -> None:
    assert prepared(ALONE, SIMPLIFIER) == ALONE
    case = Case("instruction-hoister", "instruction-hoister", needs_schedule=True)
    assert parse_module(prepared(ALONE, case)).is_scheduled
    scheduled = prepared(ALONE, case)
    assert prepared(scheduled, case) == scheduled


def test_verdicts_say_what_came_of_a_pass() -> None:
    bench = Bench(ALONE)
    outcomes = [bench.judge(case).outcome for case in (Case("cse", "cse"), SIMPLIFIER, SIMPLIFIER)]
    assert outcomes == ["unchanged", "equal", "equal"]
    large = ALONE.replace("s32[4]", "s32[40000000]")
    assert Bench(large).judge(SIMPLIFIER).outcome == "shrunken"
    fence = Case("combine-collectives{groups=[[a,b]]}", "combine-collectives")
    assert Bench(ALONE).judge(fence).outcome == "unchanged"


def test_a_result_that_is_known_to_be_equal_is_not_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(ALONE)
    assert bench.judge(SIMPLIFIER).outcome == "equal"
    monkeypatch.setattr(Reference, "examine", lambda *_: pytest.fail("it runs again"))
    assert bench.judge(SIMPLIFIER).outcome == "equal"


def _swap(self: object, module: Module, context: object) -> bool:
    for instruction in list(module.instructions(Opcode.SUBTRACT)):
        left, right = instruction.operands
        instruction.set_operands([right, left])
    return True


def _crash(self: object, module: Module, context: object) -> bool:
    raise KeyError("planted")


@pytest.mark.parametrize(
    ("planted", "kind"),
    [
        (_swap, "tuple-simplifier: output[N] was N, it is N"),
        (_crash, "tuple-simplifier: KeyError in"),
    ],
)
def test_a_planted_defect_is_found_on_each_number_of_devices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, planted: object, kind: str
) -> None:
    monkeypatch.setattr(TupleSimplifier, "run", planted)
    file = tmp_path / "m.hlo"
    file.write_text(PROGRAM)
    with clock():
        progress = Modules((str(file),), only="^tuple-simplifier$").examine(0, set())
    kinds = {finding.problem.kind for finding in progress.findings}
    assert len(kinds) == 1, kinds
    assert kinds.pop().startswith(kind)
    assert len(progress.findings) == 6, "replicas and partitions: 1, 2, 4 devices"
    content = progress.findings[0].content.decode()
    assert content.startswith(f"// {file}\nHloModule m, replica_count=2")
    assert content.endswith("// --passes 'tuple-simplifier'\n")


GATHER = """HloModule m

ENTRY e {
  p = f32[33,34]{1,0} parameter(0)
  i = s32[1806,1]{1,0} parameter(1)
  ROOT r = f32[1806,7,8]{2,1,0} gather(p, i), offset_dims={1,2}, collapsed_slice_dims={},
    start_index_map={0}, index_vector_dim=1, slice_sizes={7,8}
}
"""


def test_a_loop_may_take_many_more_steps_than_the_operation_that_it_is_of() -> None:
    passes = "gather-expander{mode=eliminate_all_gathers}"
    verdict = Bench(GATHER).judge(Case(passes, "gather-expander"))
    assert verdict.outcome in ("equal", "shrunken"), verdict.reason


def _never_ends(self: object, module: Module, context: object) -> bool:
    loop = """HloModule m

c {
  s = s32[4] parameter(0)
  ROOT t = pred[] constant(true)
}

b {
  s = s32[4] parameter(0)
  ROOT n = s32[4] negate(s)
}

ENTRY e {
  p = s32[4] parameter(0)
  ROOT w = s32[4] while(p), condition=c, body=b
}
"""
    restore(module, loop)
    return True


def test_a_loop_that_never_ends_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TupleSimplifier, "run", _never_ends)
    monkeypatch.setattr("pass_sweep_lib.judge._STEPS", 2_000)
    monkeypatch.setattr("pass_sweep_lib.judge._STOPPED", "stopped after 2,000 steps")
    verdict = Bench(ALONE).judge(SIMPLIFIER)
    assert verdict.outcome == "wrong"
    assert "stopped after 20,000 steps" in verdict.reason


def test_modules_that_are_no_subject_are_counted(tmp_path: Path) -> None:
    texts = {
        "broken": "HloModule",
        "large": ALONE,
        "invalid": ALONE.replace("s32[4] sub", "s32[5] sub"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    files = tuple(str(tmp_path / name) for name in texts)
    outcomes = [Modules(files, most=3).examine(n, set()).outcomes for n in range(2)]
    outcomes.append(Modules(files).examine(2, set()).outcomes)
    assert outcomes == [{"invalid": 1}, {"too many": 1}, {"invalid": 1}]


@pytest.mark.slow
def test_no_pass_changes_what_a_sample_of_the_corpus_computes(shared: Path) -> None:
    files = module_files(shared, seed=7)
    modules = Modules(files, most=60)
    found = Progress()
    with clock():
        for number in range(1, 17):
            found.add(modules.examine(number, set()))
    told = [f"{f.problem.kind}: {files[f.number]}" for f in found.findings]
    assert told == []
    assert found.outcomes["modules"] > 9
    assert all(found.outcomes[f"compared on {devices}"] > 100 for devices in (1, 2, 4))
    assert "pipeline(xla-cpu-simplification)" in table(found.outcomes, list(all_cases()))
