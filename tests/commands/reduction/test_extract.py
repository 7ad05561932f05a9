"""`hloopt extract`: slices that verify, run, and compute what the original does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hloopt.cli import main
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import arrays_of
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.reduction.extraction import extract_instructions
from hloopt.text import parse_module
from hloopt.verifier import verify_module

MIXED = """HloModule mixed, input_output_alias={ {0}: (0, {}, may-alias) }, replica_count=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  ROOT %n = f32[8] negate(%p)
}

%condition (c: (s32[], f32[8])) -> pred[] {
  %c = (s32[], f32[8]) parameter(0)
  %ci = s32[] get-tuple-element(%c), index=0
  %end = s32[] constant(3)
  ROOT %go = pred[] compare(%ci, %end), direction=LT
}

%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %v = f32[8] get-tuple-element(%t), index=1
  %step = s32[] constant(1)
  %next = s32[] add(%i, %step)
  %w = f32[8] add(%v, %v), metadata={op_name="jit(f)/loop/body/add"}
  ROOT %r = (s32[], f32[8]) tuple(%next, %w)
}

ENTRY %main (x: f32[8], y: f32[4]) -> (f32[8], f32[8]) {
  %x = f32[8] parameter(0)
  %y = f32[4] parameter(1)
  %f = f32[8] fusion(%x), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/layer/neg"}
  %start = (f32[4], f32[8]) all-gather-start(%y), replica_groups={{0,1}}, dimensions={0}, GATHER
  %done = f32[8] all-gather-done(%start)
  %m = f32[8] multiply(%f, %done)
  %sum = f32[8] all-reduce(%m), replica_groups={{0,1}}, to_apply=%add
  %zero = s32[] constant(0)
  %init = (s32[], f32[8]) tuple(%zero, %sum)
  %loop = (s32[], f32[8]) while(%init), condition=%condition, body=%body, LOOP
  %l = f32[8] get-tuple-element(%loop), index=1
  ROOT %out = (f32[8], f32[8]) tuple(%l, %m)
}
""".replace("GATHER", 'metadata={op_name="jit(f)/layer/gather"}').replace(
    "LOOP", 'metadata={op_name="jit(f)/loop"}'
)
MODULES = (
    "branches.before_optimizations",
    "fori_loop.after_optimizations",
    "mlp_psum_8dev.after_optimizations",
    "nested_calls.before_optimizations",
    "ring_matmul_8dev.after_spmd_partitioning",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mixed.hlo").write_text(MIXED)


def extracted(*arguments: str) -> Module:
    """The slice of `mixed.hlo`, which verifies and runs."""
    assert main(["extract", "mixed.hlo", *arguments, "-o", "slice.hlo"]) == 0
    module = parse_module(Path("slice.hlo").read_text())
    assert verify_module(module) == []
    assert main(["run", "slice.hlo"]) == 0
    return module


def names(module: Module) -> list[str]:
    return [i.name for i in module.entry.instructions if i.opcode is not Opcode.PARAMETER]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["%m"], ["m"]),
        (["m"], ["m"]),
        (["%f"], ["f"]),
        (["%sum"], ["sum"]),
        (["%start"], ["start", "done"]),
        (["%done"], ["start", "done"]),
        (["%loop"], ["loop"]),
        (["%x"], []),
        (["%m", "--depth", "1"], ["f", "start", "done", "m"]),
        (["%f", "--users", "1"], ["f", "m"]),
        (["%f", "%sum"], ["f", "sum", "tuple"]),
        (["--scope", "jit(f)/layer"], ["f", "start", "done", "tuple"]),
        (["--scope", "jit(f)/loop/"], ["loop"]),
        (["fused"], ["n"]),
        (["%fused"], ["n"]),
        (["body"], ["i", "v", "step", "next", "w", "r"]),
        (["%w"], ["w"]),
    ],
)
def test_a_slice_has_what_is_asked_for_and_runs(arguments: list[str], kept: list[str]) -> None:
    assert names(extracted(*arguments)) == kept


def test_parameters_stand_for_operands_in_their_shapes() -> None:
    module = extracted("%m")
    assert [p.shape.dimensions for p in module.entry.parameters] == [(8,), (8,)]
    module = extracted("%m", "--depth", "1")
    assert {p.name: p.shape.dimensions for p in module.entry.parameters} == {
        "x": (8,),
        "y": (4,),
    }


def test_aliases_of_the_old_results_are_gone() -> None:
    assert "input_output_alias" not in extracted("%x", "--users", "1").attributes


def test_stdout_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extract", "mixed.hlo", "%m"]) == 0
    assert verify_module(parse_module(capsys.readouterr().out)) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["%loup"], "did you mean 'loop'?"),
        (["conditio"], "did you mean 'condition'?"),
        (["%w", "%m"], "the instructions are in 2 computations: %body, %main"),
        (["--scope", "jit(f)/lyer"], "did you mean 'jit(f)/layer'?"),
        (["--scope", "/"], "no instruction has an op_name in '/'"),
        (["--scope", "jit(f)/lay"], "no instruction has an op_name in 'jit(f)/lay'"),
        ([], "name instructions or a computation"),
        (["%m", "--scope", "jit(f)"], "name instructions or a computation"),
        (["body", "--depth", "1"], "--depth and --users are steps from instructions"),
        (["%m", "--depth", "-1"], "--depth"),
    ],
)
def test_what_cannot_be_extracted_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["extract", "mixed.hlo", *arguments, "-o", "slice.hlo"]) == 2
    assert said in capsys.readouterr().err
    assert not Path("slice.hlo").exists()


def results(module: Module, named: list[str], given: list[dict[str, object]]) -> list[object]:
    """The results by device, with parameters by the names in `given`."""
    devices = devices_of(module.replica_count, module.num_partitions)
    arguments = [[values[name] for name in named] for values in given]
    return run_module(module, arguments, devices=devices)


@pytest.mark.parametrize("name", MODULES)
def test_a_slice_with_all_ancestors_computes_what_the_original_does(root: Path, name: str) -> None:
    text = (root / f"testdata/{name}.hlo").read_text()
    whole = parse_module(text)
    devices = devices_of(whole.replica_count, whole.num_partitions)
    arguments = [Inputs().arguments(whole.entry, device, 0) for device in devices]
    given: list[dict[str, object]] = [
        {p.name: v for p, v in zip(whole.entry.parameters, values, strict=True)}
        for values in arguments
    ]
    chosen = [
        i.name
        for i in whole.entry.instructions
        if i.opcode is not Opcode.PARAMETER and all(s.is_array for s in [i.shape])
    ]
    for each in chosen[:: max(1, len(chosen) // 5)]:
        expected_of = parse_module(text)
        expected_of.entry.set_root(expected_of[each])
        expected = results(expected_of, [p.name for p in whole.entry.parameters], given)
        module = parse_module(text)
        extract_instructions(module, [module[each]], depth=len(whole.entry))
        assert verify_module(parse_module(str(module))) == []
        entry = module.entry
        found = results(module, [p.name for p in entry.parameters], given)
        if entry.root.name != each:
            place = [operand.name for operand in entry.root.operands].index(each)
            found = [value[place] for value in found]  # type: ignore[index]  # a tuple
        for left, right in zip(expected, found, strict=True):
            for one, other in zip(arrays_of(left), arrays_of(right), strict=True):
                np.testing.assert_array_equal(one, other)
