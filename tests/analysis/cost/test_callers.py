"""The cost of what runs other computations: loops, branches, custom calls; limits of nesting."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.cost.modules import entry_of

from hloopt.analysis.cost import Cost, CostAnalysis
from hloopt.analysis.cost.runs import RUNNING, count_runs
from hloopt.files import load
from hloopt.ir import Instruction, Module, Opcode, tuple_shape
from hloopt.text import parse_module

LOOP = """
body { p = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1  k = s32[] constant(1)  j = s32[] add(i, k)
  y = f32[8] multiply(x, x)  ROOT t = (s32[], f32[8]) tuple(j, y) }
cond { p = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(5)  ROOT c = pred[] compare(i, k), direction=LT }
ENTRY e { p = (s32[], f32[8]) parameter(0)
  ROOT w = (s32[], f32[8]) while(p), condition=cond, body=bodyATTRIBUTES }
"""
KNOWN = ', backend_config={"known_trip_count":{"n":"5"}}'


@pytest.mark.parametrize(
    "config", [KNOWN, ', backend_config="{\\"known_trip_count\\":{\\"n\\":\\"5\\"}}"']
)
def test_a_loop_costs_its_trips(config: str) -> None:
    module = parse_module(LOOP.replace("ATTRIBUTES", config))
    costs = CostAnalysis(module)
    assert costs.module().flops == 5 * 9 + 6
    assert not costs.unknown_loops
    assert CostAnalysis(module, as_xla=True).module().flops == 10
    runs = {computation.name: runs for computation, runs in count_runs(module, costs).items()}
    assert runs == {"e": (1, True), "body": (5, True), "cond": (6, True)}


def test_a_loop_of_unknown_trips_takes_one_and_is_named() -> None:
    module = parse_module(LOOP.replace("ATTRIBUTES", ""))
    costs = CostAnalysis(module)
    assert costs.module().flops == 10
    assert list(costs.unknown_loops) == [module.entry.root]
    assert not any(
        runs.is_known
        for computation, runs in count_runs(module, costs).items()
        if computation.name != "e"
    )


CONDITIONAL = """
small { p = f32[10] parameter(0)  ROOT r = f32[10] exponential(p) }
large { p = f32[20] parameter(0)  n = f32[20] negate(p)
  ROOT s = f32[10] slice(n), slice={[0:10]} }
ENTRY e { p = pred[] parameter(0)  a = f32[10] parameter(1)  b = f32[20] parameter(2)
  ROOT c = f32[10] conditional(p, a, b), true_computation=small, false_computation=large }
"""


def test_a_conditional_costs_its_costliest_branch() -> None:
    module = parse_module(CONDITIONAL)
    costs = CostAnalysis(module)
    assert (costs.module().flops, costs.module().transcendentals) == (20, 0)
    runs = {computation.name: runs.times for computation, runs in count_runs(module, costs).items()}
    assert runs == {"e": 1, "small": 0, "large": 1}
    as_xla = CostAnalysis(module, as_xla=True).module()
    assert (as_xla.flops, as_xla.transcendentals, as_xla.bytes_accessed) == (20, 10, 240)


def test_an_unknown_custom_call_moves_its_operands_and_is_named() -> None:
    module = entry_of("f32[10]", 'f32[10] custom-call(a), custom_call_target="mine"')
    costs = CostAnalysis(module)
    assert costs.module() == Cost(0, 0, 40, 40, 80)
    assert list(costs.unknown_calls) == [module.entry.root]
    as_xla = CostAnalysis(module, as_xla=True).module()
    assert (as_xla.flops, as_xla.bytes_accessed) == (-1, -1)


@pytest.mark.parametrize(
    ("call", "flops", "moved"),
    [
        ('f32[10,20] custom-call(a), custom_call_target="Sharding"', 0, 0),
        ('f32[10,20] custom-call(a), custom_call_target="MoveToHost"', 0, 1600),
        (
            '(f32[10,30], s8[99]) custom-call(a, b), custom_call_target="__cublas$gemm", '
            'backend_config={"gemm_backend_config":{"dot_dimension_numbers":'
            '{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}',
            *(12000, 800 + 2400 + 1200 + 99),
        ),
        ('f32[10,10] custom-call(a, a), custom_call_target="__op$block_scaled_dot"', 4000, 2000),
        (
            '(f32[10,10], u8[7]) custom-call(a, a), custom_call_target="__cudnn$blockScaledDot"',
            *(4000, 800 + 800 + 400 + 7),
        ),
        (
            '(f8e4m3fn[10,20], f32[10]) custom-call(a), custom_call_target="__op$quantize"',
            *(200, 800 + 200 + 40),
        ),
        ('bf16[10,20] custom-call(a, a), custom_call_target="__op$dequantize"', 200, 2000),
    ],
)
def test_known_custom_calls_are_no_guess(call: str, flops: int, moved: int) -> None:
    module = entry_of("f32[10,20];f32[20,30]", call)
    costs = CostAnalysis(module)
    assert (costs.module().flops, costs.module().bytes_accessed) == (flops, moved)
    assert not costs.unknown_calls


def test_a_scan_applies_its_computation_for_each_step() -> None:
    module = parse_module(
        "f { x = f32[4] parameter(0)  c = f32[4] parameter(1)  s = f32[4] add(x, c)  "
        "ROOT t = (f32[4], f32[4]) tuple(s, s) }\n"
        "ENTRY e { a = f32[6,4] parameter(0)  z = f32[4] parameter(1)  ROOT r = "
        "(f32[6,4], f32[4]) scan(a, z), dimensions={0}, num_carries=1, to_apply=f }"
    )
    assert CostAnalysis(module).module().flops == 24


def _all_rows(module: Module, costs: CostAnalysis) -> list[tuple[Instruction, int]]:
    return [
        (instruction, runs.times)
        for computation, runs in count_runs(module, costs).items()
        for instruction in computation.instructions
        if instruction.opcode not in RUNNING
    ]


def test_instructions_times_runs_are_the_module(root: Path) -> None:
    paths = sorted((root / "testdata").glob("*.hlo*"))
    assert len(paths) > 10
    for path in paths:
        module = load(str(path))
        costs = CostAnalysis(module)
        parts = Cost.total(costs.of(i).times(times) for i, times in _all_rows(module, costs))
        assert parts == costs.module(), path


def test_calls_nested_thousands_deep_are_no_recursion() -> None:
    depth = 3000
    texts = ["level0 { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"]
    texts += [
        f"level{i} {{ p = f32[4] parameter(0)  ROOT r = f32[4] call(p), to_apply=level{i - 1} }}"
        for i in range(1, depth)
    ]
    main = (
        f"ENTRY e {{ p = f32[4] parameter(0)  ROOT r = f32[4] call(p), to_apply=level{depth - 1} }}"
    )
    module = parse_module("\n".join([*texts, main]))
    costs = CostAnalysis(module)
    assert costs.of(module.entry.root).flops == 4
    assert len(count_runs(module, costs)) == depth + 1


def test_fusions_nested_thousands_deep_are_no_recursion() -> None:
    depth = 3000
    texts = ["level0 { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"]
    texts += [
        f"level{i} {{ p = f32[4] parameter(0)  f = f32[4] fusion(p), kind=kLoop, "
        f"calls=level{i - 1}  ROOT r = f32[4] negate(f) }}"
        for i in range(1, depth)
    ]
    main = (
        "ENTRY e { p = f32[4] parameter(0)  "
        f"ROOT r = f32[4] fusion(p), kind=kLoop, calls=level{depth - 1} }}"
    )
    module = parse_module("\n".join([*texts, main]))
    cost = CostAnalysis(module).module()
    assert (cost.flops, cost.bytes_accessed) == (4 * depth, 32)


def test_tuples_nested_thousands_deep_are_no_recursion() -> None:
    depth = 3000
    module = parse_module("ENTRY e { ROOT p = f32[4] parameter(0) }")
    value = module.entry.root
    for _ in range(depth):
        value = module.entry.add(Opcode.TUPLE, tuple_shape([value.shape]), [value])
    value = module.entry.add(Opcode.OPT_BARRIER, value.shape, [value])
    module.entry.set_root(value)
    assert CostAnalysis(module).module().bytes_accessed == 8 * depth + 8 + 16
