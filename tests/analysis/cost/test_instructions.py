"""The cost of one instruction, as XLA counts it."""

from __future__ import annotations

import pytest
from tests.analysis.cost.modules import entry_of

from hloopt.analysis.cost import CostAnalysis

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
