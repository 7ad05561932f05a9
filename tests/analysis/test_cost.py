"""What instructions cost. The figures of `RULES` are those XLA gives for the same text."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.analysis.cost import Cost, CostAnalysis
from hloopt.analysis.cost.runs import RUNNING, count_runs
from hloopt.files import load
from hloopt.ir import Instruction, Module, Opcode, tuple_shape
from hloopt.text import parse_module

APPLIED = """
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
soft { a = f32[] parameter(0)  b = f32[] parameter(1)  e = f32[] exponential(a)
  ROOT c = f32[] add(e, b) }
"""


def entry_of(parameters: str, instruction: str) -> Module:
    """A module that runs one instruction on parameters `a`, `b`, … of these shapes."""
    shapes = parameters.split(";") if parameters else []
    lines = [f"{name} = {shape} parameter({i})" for i, (name, shape) in enumerate(named(shapes))]
    return parse_module(f"{APPLIED}ENTRY e {{ {'  '.join(lines)}  ROOT r = {instruction} }}")


def named(shapes: list[str]) -> list[tuple[str, str]]:
    return list(zip("abcdefgh", shapes, strict=False))


RULES = [
    # parameters, instruction, flops, transcendentals, bytes accessed
    ("f32[10]", "f32[10] negate(a)", 10, 0, 80),
    ("f32[10]", "f32[10] copy(a)", 0, 0, 80),
    ("f32[10]", "f32[10] tanh(a)", 0, 10, 80),
    ("f32[10];f32[10]", "f32[10] power(a, b)", 0, 10, 120),
    ("f32[10];f32[10]", "pred[10] compare(a, b), direction=LT", 10, 0, 90),
    ("f32[];f32[10];f32[]", "f32[10] clamp(a, b, c)", 10, 0, 88),
    ("f32[10]", "s32[10] bitcast-convert(a)", 10, 0, 80),
    ("f32[10]", "f32[10] bitcast(a)", 0, 0, 0),
    ("s4[10]{0:E(4)}", "s4[10]{0:E(4)} negate(a)", 10, 0, 10),
    ("f32[<=10,20]", "f32[<=10,20] negate(a)", 200, 0, 1616),
    ("f32[10];s32[]", "(f32[10], s32[]) tuple(a, b)", 0, 0, 16),
    ("(f32[10], s32[])", "f32[10] get-tuple-element(a), index=0", 0, 0, 0),
    ("(f32[10], f32[5])", "(f32[10], f32[5]) opt-barrier(a)", 0, 0, 76),
    ("f32[10]", "f32[10,7] broadcast(a), dimensions={0}", 0, 0, 320),
    ("f32[4,8]", "f32[8,4] transpose(a), dimensions={1,0}", 0, 0, 256),
    ("f32[4,8]", "f32[8,4]{0,1} transpose(a), dimensions={1,0}", 0, 0, 0),
    ("", "s32[10] iota(), iota_dimension=0", 0, 0, 40),
    # parts of operands
    ("f32[10,20]", "f32[5,20] slice(a), slice={[0:5], [0:20]}", 0, 0, 800),
    (
        "f32[10,20];s32[];s32[]",
        "f32[5,20] dynamic-slice(a, b, c), dynamic_slice_sizes={5,20}",
        *(0, 0, 804),
    ),
    (
        "f32[10,20];f32[5,20];s32[];s32[]",
        "f32[10,20] dynamic-update-slice(a, b, c, d)",
        *(0, 0, 804),
    ),
    (
        "f32[10,20];s32[5]",
        "f32[5,20] gather(a, b), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,20}",
        *(0, 0, 820),
    ),
    (
        "f32[10,20];s32[5];f32[5,20]",
        "f32[10,20] scatter(a, b, c), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
        *(100, 0, 1220),
    ),
    # applied computations
    ("f32[10,20];f32[]", "f32[10] reduce(a, b), dimensions={1}, to_apply=sum", 190, 0, 844),
    ("f32[10,20];f32[]", "f32[10] reduce(a, b), dimensions={1}, to_apply=soft", 190, 190, 844),
    (
        "f32[10,20];f32[]",
        "f32[8,19] reduce-window(a, b), window={size=3x2}, to_apply=sum",
        *(760, 0, 1412),
    ),
    (
        "f32[10,20];f32[5,10];f32[]",
        "f32[10,20] select-and-scatter(a, b, c), window={size=2x2 stride=2x2}, select=less, "
        "scatter=sum",
        *(200, 0, 1804),
    ),
    ("f32[9];f32[9]", "f32[9] map(a, b), dimensions={0}, to_apply=sum", 9, 0, 108),
    ("f32[10,20]", "f32[10,20] sort(a), dimensions={1}, to_apply=less", 1600, 0, 1600),
    ("f32[1]", "f32[1] sort(a), dimensions={0}, to_apply=less", 0, 0, 8),
    ("f32[10,20]", "f32[10,20] all-reduce(a), to_apply=soft", 200, 0, 1600),
    ("f32[10,20]", "f32[20,20] all-gather(a), dimensions={0}", 0, 0, 2400),
    # contraction
    (
        "f32[5,10,20];f32[5,20,30]",
        "f32[5,10,30] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        *(60000, 0, 22000),
    ),
    (
        "f32[1,8,8,3];f32[3,3,3,5]",
        "f32[1,8,8,5] convolution(a, b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        *(14520, 0, 2588),
    ),
    (
        "f32[1,4,4,3];f32[3,3,3,5]",
        "f32[1,9,9,5] convolution(a, b), window={size=3x3 pad=2_2x2_2 lhs_dilate=2x2}, "
        "dim_labels=b01f_01io->b01f",
        *(4320, 0, 2352),
    ),
    (
        "f32[1,8,8,6];f32[3,3,3,4]",
        "f32[1,6,6,4] convolution(a, b), window={size=3x3}, dim_labels=b01f_01io->b01f, "
        "feature_group_count=2",
        *(7776, 0, 2544),
    ),
    ("f32[10,12]", "c64[10,7] fft(a), fft_type=RFFT, fft_length={12}", 2880, 0, 1040),
    ("f32[3,7,7]", "f32[3,7,7] cholesky(a), lower=true", 343, 0, 588),
    (
        "f32[3,4,4];f32[3,4,5]",
        "f32[3,4,5] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=false, "
        "transpose_a=NO_TRANSPOSE",
        *(480, 0, 576),
    ),
    ("f32[];f32[]", "f32[10,10] rng(a, b), distribution=rng_uniform", 0, 100, 408),
]


@pytest.mark.parametrize(
    ("parameters", "instruction", "flops", "transcendentals", "moved"),
    RULES,
    ids=[rule[1][:60] for rule in RULES],
)
def test_an_instruction_costs_what_xla_says(
    parameters: str, instruction: str, flops: int, transcendentals: int, moved: int
) -> None:
    module = entry_of(parameters, instruction)
    cost = CostAnalysis(module).of(module.entry.root)
    assert (cost.flops, cost.transcendentals, cost.bytes_accessed) == (
        flops,
        transcendentals,
        moved,
    )
    assert sum(cost.operand_bytes) == cost.bytes_read
    assert cost.unfused_bytes == cost.bytes_accessed


@pytest.mark.parametrize("size", [1, 4, 7])
@pytest.mark.parametrize("taps", [1, 3, 9])
@pytest.mark.parametrize("stride", [1, 2, 6])
@pytest.mark.parametrize("low", [-2, 0, 5])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 1), (4, 3), (3, 6)])
def test_a_convolution_counts_where_window_and_input_meet(
    size: int, taps: int, stride: int, low: int, dilations: tuple[int, int]
) -> None:
    lhs, rhs = dilations
    reach = (size - 1) * lhs + 1 + low + 20 - (taps - 1) * rhs - 1
    positions = reach // stride + 1 if reach >= 0 else 0
    module = entry_of(
        f"f32[1,{size},1];f32[{taps},1,1]",
        f"f32[1,{positions},1] convolution(a, b), dim_labels=b0f_0io->b0f, window={{size={taps} "
        f"stride={stride} pad={low}_20 lhs_dilate={lhs} rhs_dilate={rhs}}}",
    )
    places = [p * stride + t * rhs - low for p in range(positions) for t in range(taps)]
    meetings = [place for place in places if place in range(0, size * lhs, lhs)]
    assert CostAnalysis(module).module().flops == 2 * len(meetings)


FUSIONS = [
    # parameters, fused instructions, result, bytes of each operand, bytes written
    ("f32[100];f32[100]", "c = f32[100] add(a, b)  ROOT r = f32[100] multiply(c, a)", [400, 400]),
    ("f32[100]", "k = f32[100] constant({...})  ROOT r = f32[100] multiply(a, k)", [400]),
    (
        "f32[100]",
        "s = f32[10] slice(a), slice={[0:10]}  t = f32[10] slice(a), slice={[5:15]}  "
        "ROOT r = f32[10] add(s, t)",
        [80],
    ),
    (
        "f32[100]",
        "s = f32[10] slice(a), slice={[0:10]}  n = f32[100] negate(a)  "
        "t = f32[10] slice(n), slice={[5:15]}  ROOT r = f32[10] add(s, t)",
        [440],
    ),
    (
        "f32[100];f32[10];s32[]",
        "n = f32[10] negate(b)  ROOT r = f32[100] dynamic-update-slice(a, n, c)",
        [0, 40, 4],
    ),
    (
        "(f32[100], f32[50]);f32[10]",
        "x = f32[100] get-tuple-element(a), index=0  s = f32[10] slice(x), slice={[0:10]}  "
        "ROOT r = f32[10] add(s, b)",
        [40 + 16, 40],
    ),
    (
        "f32[100]",
        "s = f32[50,2] reshape(a)  t = f32[10,10] reshape(a)  "
        "ROOT r = (f32[50,2], f32[10,10]) tuple(s, t)",
        [800],
    ),
    ("f32[100];f32[7]", "ROOT r = f32[100] negate(a)", [400, 0]),
]


@pytest.mark.parametrize(("parameters", "body", "read"), FUSIONS)
def test_a_fusion_reads_what_its_instructions_use(
    parameters: str, body: str, read: list[int]
) -> None:
    names = named(parameters.split(";"))
    lines = "  ".join(f"{name} = {shape} parameter({i})" for i, (name, shape) in enumerate(names))
    shape = body.partition("ROOT r = ")[2]
    shape = shape[: shape.index(")") + 1] if shape.startswith("(") else shape.split()[0]
    module = parse_module(
        f"fused {{ {lines}  {body} }}\nENTRY e {{ {lines}  ROOT r = {shape} "
        f"fusion({', '.join(name for name, _ in names)}), kind=kLoop, calls=fused }}"
    )
    assert list(CostAnalysis(module).of(module.entry.root).operand_bytes) == read


def fused(*bodies: str) -> Cost:
    """The cost of the fusion of `f32[100]` that the last body is; the others are nested in it."""
    texts = [f"f{i} {{ {body} }}" for i, body in enumerate(bodies)]
    module = parse_module(
        "\n".join(texts) + "\nENTRY e { a = f32[100] parameter(0)  ROOT r = f32[10] fusion(a), "
        f"kind=kLoop, calls=f{len(bodies) - 1} }}"
    )
    return CostAnalysis(module).of(module.entry.root)


def test_what_a_nested_fusion_passes_on_is_read_as_far_as_it_is_used() -> None:
    inner = "a = f32[100] parameter(0)  ROOT n = f32[100] negate(a)"
    outer = "a = f32[100] parameter(0)  f = f32[100] fusion(a), kind=kLoop, calls=f0  "
    assert fused(inner, outer + "ROOT s = f32[10] slice(f), slice={[0:10]}").bytes_read == 40
    used = inner.replace("ROOT n", "m").replace("negate(a)", "tanh(a)")
    used += "  ROOT n = f32[100] negate(m)"
    assert fused(used, outer + "ROOT s = f32[10] slice(f), slice={[0:10]}").bytes_read == 400


def test_unfused_bytes_are_those_of_the_fused_instructions_one_by_one() -> None:
    cost = fused(
        "a = f32[100] parameter(0)  n = f32[100] negate(a)  e = f32[100] exponential(n)  "
        "ROOT s = f32[10] slice(e), slice={[0:10]}"
    )
    assert (cost.flops, cost.transcendentals) == (100, 100)
    assert (cost.bytes_accessed, cost.unfused_bytes) == (440, 800 + 800 + 80)


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
