"""What each kind of operation lets shrink, and that the attributes fit."""

from __future__ import annotations

import pytest
from tests.shrink.shrinking import SUM, module_of, shrunk, sizes

from hloopt.verifier import verify_module

LESS = """
less { p0 = f32[] parameter(0)
  p1 = f32[] parameter(1)
  ROOT lt = pred[] compare(p0, p1), direction=LT }
less_with_places { p2 = f32[] parameter(0)
  p3 = f32[] parameter(1)
  p4 = s32[] parameter(2)
  p5 = s32[] parameter(3)
  ROOT lower = pred[] compare(p2, p3), direction=LT }
half { p6 = f32[64] parameter(0)
  ROOT first = f32[32] slice(p6), slice={[0:32]} }
"""
HEADER = ", num_partitions=4"
GROUPS = "replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true"

# Instructions, and the sizes of arrays with no budget at all.
RELATIONS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "all but the first few of a concatenation": (
        """x = f32[32] parameter(0)
        y = f32[1] parameter(1)
        ROOT r = f32[33] concatenate(y, x), dimensions={0}""",
        {"x": (2,), "y": (1,), "r": (3,)},
    ),
    "a slice with a stride that leaves some out": (
        "x = f32[64] parameter(0)\n ROOT r = f32[21] slice(x), slice={[0:63:3]}",
        {"x": (64,), "r": (21,)},
    ),
    "an element of a counted array": (
        """x = s32[64] parameter(0)
        i = s32[64] iota(), iota_dimension=0
        last = s32[1] slice(i), slice={[63:64]}
        s = s32[64] add(x, i)
        ROOT r = (s32[64], s32[1]) tuple(s, last)""",
        {"x": (64,)},
    ),
    "padding between elements": (
        """x = f32[32] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[63] pad(x, z), padding=0_0_1""",
        {"x": (32,), "r": (63,)},
    ),
    "an offset of two dimensions in one vector": (
        """x = f32[64,32] parameter(0)
        i = s32[2] parameter(1)
        ROOT r = f32[16,32] dynamic-slice(x, i), dynamic_slice_sizes={16,32}""",
        {"x": (64, 2), "i": (2,), "r": (16, 2)},
    ),
    "part of the rows that a gather is moved along": (
        """t = f32[100,64] parameter(0)
        i = s32[32,1] parameter(1)
        ROOT r = f32[32,4,64] gather(t, i), offset_dims={1,2}, collapsed_slice_dims={},
          start_index_map={0}, index_vector_dim=1, slice_sizes={4,64}""",
        {"t": (100, 3), "i": (2, 1), "r": (2, 4, 3)},
    ),
    "rows added where indices say": (
        """t = f32[1000,64] parameter(0)
        i = s32[32,1] parameter(1)
        u = f32[32,64] parameter(2)
        ROOT r = f32[1000,64] scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0},
          scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""",
        {"t": (4, 3), "i": (2, 1), "u": (2, 3), "r": (4, 3)},
    ),
    "the largest": (
        "x = f32[32,64] parameter(0)\n ROOT r = (f32[32,8], s32[32,8]) topk(x), k=8, largest=true",
        {"x": (3, 16), "r": (3, 2)},
    ),
    "bits of other elements": (
        "x = f32[64] parameter(0)\n ROOT r = u8[64,4] bitcast-convert(x)",
        {"x": (2,), "r": (2, 4)},
    ),
    "sorted": (
        "x = f32[64,32] parameter(0)\nROOT r = f32[64,32] sort(x), dimensions={1}, to_apply=less",
        {"x": (3, 2), "r": (3, 2)},
    ),
    "sorted with their places": (
        """x = f32[64] parameter(0)
        i = s32[64] iota(), iota_dimension=0
        ROOT r = (f32[64], s32[64]) sort(x, i), dimensions={0}, to_apply=less_with_places""",
        {"x": (2,), "r": (2,)},
    ),
    "a counted array in reverse": (
        """x = s32[64] parameter(0)
        i = s32[64] iota(), iota_dimension=0
        v = s32[64] reverse(i), dimensions={0}
        ROOT r = s32[64] add(x, v)""",
        {"x": (64,), "r": (64,)},
    ),
    "a sum of a counted array": (
        """x = f32[64] parameter(0)
        i = f32[64] iota(), iota_dimension=0
        z = f32[] constant(0)
        s = f32[] reduce(i, z), dimensions={0}, to_apply=add
        a = f32[64] add(x, i)
        ROOT r = (f32[64], f32[]) tuple(a, s)""",
        {"x": (64,), "r": (64,)},
    ),
    "a convolution": (
        """x = f32[32,14,14,64] parameter(0)
        k = f32[3,3,64,128] parameter(1)
        ROOT r = f32[32,12,12,128] convolution(x, k), window={size=3x3},
          dim_labels=b01f_01io->b01f""",
        {"x": (2, 14, 14, 3), "k": (3, 3, 3, 4), "r": (2, 12, 12, 4)},
    ),
    "a convolution by one pixel": (
        """x = f32[32,14,14,64] parameter(0)
        k = f32[1,1,64,128] parameter(1)
        ROOT r = f32[32,14,14,128] convolution(x, k), window={size=1x1},
          dim_labels=b01f_01io->b01f""",
        {"x": (3, 2, 2, 4), "k": (1, 1, 4, 5), "r": (3, 2, 2, 5)},
    ),
    "a convolution in groups": (
        """x = f32[32,14,64] parameter(0)
        k = f32[3,1,64] parameter(1)
        ROOT r = f32[32,12,64] convolution(x, k), window={size=3},
          dim_labels=b0f_0io->b0f, feature_group_count=64""",
        {"x": (32, 14, 64), "k": (3, 1, 64), "r": (32, 12, 64)},
    ),
    "normalized by given statistics": (
        """x = f32[32,64] parameter(0)
        s = f32[64] parameter(1)
        ROOT r = f32[32,64] batch-norm-inference(x, s, s, s, s), epsilon=0.1, feature_index=1""",
        {"x": (2, 3), "s": (3,), "r": (2, 3)},
    ),
    "normalized by their own statistics": (
        """x = f32[32,64] parameter(0)
        s = f32[64] parameter(1)
        ROOT r = (f32[32,64], f32[64], f32[64]) batch-norm-training(x, s, s), epsilon=0.1,
          feature_index=1""",
        {"x": (32, 2), "s": (2,), "r": (32, 2)},
    ),
    "matrices": (
        """a = f32[8,64,64] parameter(0)
        b = f32[8,64,32] parameter(1)
        l = f32[8,64,64] cholesky(a), lower=true
        ROOT r = f32[8,64,32] triangular-solve(l, b), left_side=true, lower=true,
          transpose_a=NO_TRANSPOSE""",
        {"a": (2, 4, 4), "b": (2, 4, 3), "r": (2, 4, 3)},
    ),
    "a transform": (
        "x = c64[32,64] parameter(0)\n ROOT r = c64[32,64] fft(x), fft_type=FFT, fft_length={64}",
        {"x": (2, 64), "r": (2, 64)},
    ),
    "the largest gradients of windows": (
        """x = f32[64,32] parameter(0)
        y = f32[32,32] parameter(1)
        z = f32[] constant(0)
        ROOT r = f32[64,32] select-and-scatter(x, y, z), window={size=2x1 stride=2x1},
          select=less, scatter=add""",
        {"x": (64, 2), "y": (32, 2), "r": (64, 2)},
    ),
    "a custom call that changes nothing": (
        """x = f32[64] parameter(0)
        ROOT r = f32[64] custom-call(x), custom_call_target="LayoutConstraint",
          operand_layout_constraints={f32[64]{0}}""",
        {"x": (2,), "r": (2,)},
    ),
    "a custom call that nobody knows": (
        'x = f32[64] parameter(0)\n ROOT r = f32[64] custom-call(x), custom_call_target="who"',
        {"x": (64,), "r": (64,)},
    ),
    "a started permute": (
        """x = f32[64] parameter(0)
        s = (f32[64], f32[64], u32[], u32[]) collective-permute-start(x), channel_id=1,
          source_target_pairs={{0,1}}
        ROOT r = f32[64] collective-permute-done(s)""",
        {"x": (2,), "s": (2,), "r": (2,)},
    ),
    "a started all-gather": (
        f"""x = f32[64,32] parameter(0)
        s = (f32[64,32], f32[256,32]) all-gather-start(x), dimensions={{0}}, {GROUPS}
        ROOT r = f32[256,32] all-gather-done(s)""",
        {"x": (3, 2), "r": (12, 2)},
    ),
    "a reduce-scatter": (
        f"""x = f32[64,32] parameter(0)
        ROOT r = f32[16,32] reduce-scatter(x), dimensions={{0}}, to_apply=add, {GROUPS}""",
        {"x": (8, 3), "r": (2, 3)},
    ),
    "a started copy": (
        """x = f32[64] parameter(0)
        s = (f32[64], f32[64], u32[]) copy-start(x)
        ROOT r = f32[64] copy-done(s)""",
        {"x": (2,), "s": (2,), "r": (2,)},
    ),
    "a started computation": (
        """x = f32[64] parameter(0)
        s = ((f32[64]), f32[32], s32[]) async-start(x), calls=half
        u = ((f32[64]), f32[32], s32[]) async-update(s)
        ROOT r = f32[32] async-done(u)""",
        {"x": (4,), "r": (2,)},
    ),
    "a choice between scalars": (
        """p = pred[] parameter(0)
        x = f32[64] parameter(1)
        y = f32[64] parameter(2)
        ROOT r = f32[64] select(p, x, y)""",
        {"x": (2,), "y": (2,), "r": (2,)},
    ),
    "no elements": (
        "x = f32[0,64] parameter(0)\n ROOT r = f32[64,0] reshape(x)",
        {"x": (0, 64), "r": (64, 0)},
    ),
}


@pytest.mark.parametrize("case", RELATIONS)
def test_what_shrinks(case: str) -> None:
    body, expected = RELATIONS[case]
    module = module_of(body, SUM + LESS, HEADER)
    assert not verify_module(module)
    result = shrunk(module)
    assert {name: sizes(result, name) for name in expected} == expected
    assert not verify_module(result)
