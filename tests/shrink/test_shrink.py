"""Shrinking: what becomes smaller, what stays and why, and that equal programs stay equal."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shrink.shrinking import attribute, module_of, shrunk, sizes

from hloopt.equivalence.agreement import first_difference
from hloopt.files import read_module
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value
from hloopt.ir.clone import clone_module
from hloopt.shrink import plan_shrink
from hloopt.text import print_module
from hloopt.verifier import verify_module

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"

# Instructions, and the sizes of parameters and result with no budget at all.
SHRINKS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "elementwise": (
        "x = f32[4096] parameter(0)\n y = f32[4096] parameter(1)\n ROOT r = f32[4096] add(x, y)",
        {"x": (2,), "y": (2,), "r": (2,)},
    ),
    "different sizes stay different": (
        """x = f32[512,4096] parameter(0)
        y = f32[4096,64] parameter(1)
        ROOT r = f32[512,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
        {"x": (3, 4), "y": (4, 2), "r": (3, 2)},
    ),
    "a reshape splits a dimension into heads": (
        """x = f32[16,512] parameter(0)
        h = f32[16,8,64] reshape(x)
        ROOT r = f32[8,16,64] transpose(h), dimensions={1,0,2}""",
        {"x": (3, 8), "h": (3, 2, 4), "r": (2, 3, 4)},
    ),
    "a reshape of sizes that do not divide stays": (
        "x = f32[6,10,7] parameter(0)\n ROOT r = f32[4,15,7] reshape(x)",
        {"x": (6, 10, 2), "r": (4, 15, 2)},
    ),
    "a bitcast is a reshape in memory": (
        "x = f32[64,32]{0,1} parameter(0)\n ROOT r = f32[32,64]{1,0} bitcast(x)",
        {"x": (3, 2), "r": (2, 3)},
    ),
    "halves": (
        """x = f32[64] parameter(0)
        a = f32[32] slice(x), slice={[0:32]}
        b = f32[32] slice(x), slice={[32:64]}
        ROOT r = f32[64] concatenate(b, a), dimensions={0}""",
        {"x": (4,), "a": (2,), "b": (2,), "r": (4,)},
    ),
    "every other element": (
        "x = f32[64] parameter(0)\n ROOT r = f32[32] slice(x), slice={[1:64:2]}",
        {"x": (4,), "r": (2,)},
    ),
    "all but one": (
        """x = f32[33] parameter(0)
        a = f32[32] slice(x), slice={[0:32]}
        b = f32[32] slice(x), slice={[1:33]}
        ROOT r = f32[32] subtract(b, a)""",
        {"x": (3,), "a": (2,), "b": (2,), "r": (2,)},
    ),
    "the last element": (
        "x = f32[64,9] parameter(0)\n ROOT r = f32[1,9] slice(x), slice={[63:64], [0:9]}",
        {"x": (3, 2), "r": (1, 2)},
    ),
    "an element in the middle": (
        "x = f32[64,9] parameter(0)\n ROOT r = f32[1,9] slice(x), slice={[5:6], [0:9]}",
        {"x": (64, 2), "r": (1, 2)},
    ),
    "a pad by a block": (
        """x = f32[32] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[64] pad(x, z), padding=32_0""",
        {"x": (2,), "r": (4,)},
    ),
    "a constant of one value": (
        """x = f32[8] parameter(0)
        c = f32[8] constant({1, 1, 1, 1, 1, 1, 1, 1})
        ROOT r = f32[8] add(x, c)""",
        {"x": (2,), "c": (2,), "r": (2,)},
    ),
    "a constant of several values": (
        "x = f32[3] parameter(0)\n c = f32[3] constant({1, 2, 3})\n ROOT r = f32[3] add(x, c)",
        {"x": (3,), "c": (3,), "r": (3,)},
    ),
    "positions": (
        "x = s32[64] parameter(0)\n i = s32[64] iota(), iota_dimension=0\n"
        " ROOT r = pred[64] compare(x, i), direction=EQ",
        {"x": (2,), "i": (2,), "r": (2,)},
    ),
    "positions along heads: only the major part": (
        """x = s32[8,16] parameter(0)
        f = s32[128] reshape(x)
        i = s32[128] iota(), iota_dimension=0
        ROOT r = s32[128] add(f, i)""",
        {"x": (2, 16), "r": (32,)},
    ),
    "a sum of equal values counts them": (
        """x = f32[] parameter(0)
        y = f32[64] parameter(1)
        b = f32[64] broadcast(x), dimensions={}
        z = f32[] constant(0)
        s = f32[] reduce(b, z), dimensions={0}, to_apply=add
        ROOT r = (f32[], f32[64]) tuple(s, y)""",
        {"y": (2,), "b": (64,)},
    ),
    "a sum of equal values with the same dimension as a parameter": (
        """x = f32[] parameter(0)
        y = f32[64] parameter(1)
        b = f32[64] broadcast(x), dimensions={}
        z = f32[] constant(0)
        s = f32[] reduce(b, z), dimensions={0}, to_apply=add
        a = f32[64] add(b, y)
        ROOT r = (f32[], f32[64]) tuple(s, a)""",
        {"y": (64,), "b": (64,)},
    ),
    "a sum of a part of equal values": (
        """x = f32[64] parameter(0)
        one = f32[] constant(1)
        z = f32[] constant(0)
        p = f32[128] pad(x, one), padding=64_0
        ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add""",
        {"x": (64,), "p": (128,)},
    ),
    "a sum of a part that is zero": (
        """x = f32[64] parameter(0)
        z = f32[] constant(0)
        p = f32[128] pad(x, z), padding=64_0
        ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add""",
        {"x": (2,), "p": (4,)},
    ),
    "rows by number": (
        """t = f32[1000,64] parameter(0)
        i = s32[32,1] parameter(1)
        ROOT r = f32[32,64] gather(t, i), offset_dims={1}, collapsed_slice_dims={0},
          start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}""",
        {"t": (4, 3), "i": (2, 1), "r": (2, 3)},
    ),
    "rows by known numbers": (
        """t = f32[10,64] parameter(0)
        i = s32[2,1] constant({{3},{9}})
        ROOT r = f32[2,64] gather(t, i), offset_dims={1}, collapsed_slice_dims={0},
          start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}""",
        {"t": (10, 2), "i": (2, 1), "r": (2, 2)},
    ),
    "a cache written at a position that is a parameter": (
        """c = f32[64,32] parameter(0)
        u = f32[1,32] parameter(1)
        i = s32[] parameter(2)
        z = s32[] constant(0)
        ROOT r = f32[64,32] dynamic-update-slice(c, u, i, z)""",
        {"c": (64, 2), "u": (1, 2), "r": (64, 2)},
    ),
    "the size is read": (
        """x = f32[64,32] parameter(0)
        s = s32[] get-dimension-size(x), dimensions={0}
        ROOT r = (f32[64,32], s32[]) tuple(x, s)""",
        {"x": (64, 2)},
    ),
    "what no parameter or result has": (
        """x = f32[] parameter(0)
        i = f32[50] iota(), iota_dimension=0
        b = f32[50] broadcast(x), dimensions={}
        ROOT r = f32[] dot(b, i), lhs_contracting_dims={0}, rhs_contracting_dims={0}""",
        {"i": (50,), "b": (50,)},
    ),
    "windows side by side": (
        """x = f32[64] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[4] reduce-window(x, z), window={size=16 stride=16}, to_apply=add""",
        {"x": (6,), "r": (2,)},
    ),
    "a running sum": (
        """x = f32[64] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[64] reduce-window(x, z), window={size=64 pad=63_0}, to_apply=add""",
        {"x": (2,), "r": (2,)},
    ),
    "a window that overlaps": (
        """x = f32[64] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[62] reduce-window(x, z), window={size=3}, to_apply=add""",
        {"x": (64,), "r": (62,)},
    ),
    "a dynamic dimension": (
        "x = f32[<=64,32] parameter(0)\n ROOT r = f32[<=64,32] negate(x)",
        {"x": (64, 2), "r": (64, 2)},
    ),
}


@pytest.mark.parametrize("case", SHRINKS)
def test_what_shrinks(case: str) -> None:
    body, expected = SHRINKS[case]
    result = shrunk(module_of(body))
    assert {name: sizes(result, name) for name in expected} == expected
    assert not verify_module(result)


SHARDS = """
    x = f32[16,32] parameter(0)
    p = u32[] partition-id()
    size = u32[] constant({factor})
    at = u32[] multiply(p, size)
    z = u32[] constant(0)
    part = f32[4,32] dynamic-slice(x, at, z), dynamic_slice_sizes={{4,32}}
    ROOT r = f32[16,32] all-gather(part), dimensions={{0}}, replica_groups={{{{0,1,2,3}}}},
      channel_id=1, use_global_device_ids=true"""


@pytest.mark.parametrize(
    ("factor", "whole", "part", "columns"),
    [("4", 8, 2, 3), ("8", 8, 2, 3), ("2", 16, 4, 3), ("1", 16, 4, 2)],
)
def test_offsets_scale_where_they_are_multiples_of_the_slice(
    factor: str, whole: int, part: int, columns: int
) -> None:
    module = module_of(SHARDS.format(factor=factor), header=", num_partitions=4")
    result = shrunk(module)
    assert (sizes(result, "x"), sizes(result, "part")) == ((whole, columns), (part, columns))
    devices = devices_of(1, 4)
    arguments = [Inputs().arguments(result.entry, devices[0], 0)] * 4
    outputs = run_module(result, arguments, devices=devices)
    starts = [min(device * int(factor) * part // 4, whole - part) for device in range(4)]
    expected = [row for start in starts for row in arguments[0][0][start : start + part].tolist()]
    assert outputs[0].tolist() == expected


def test_a_module_within_the_budget_is_left_as_it_is() -> None:
    module = read_module(str(TESTDATA / "fori_loop.before_optimizations.hlo"))
    unchanged, _ = clone_module(module)
    assert print_module(shrunk(module, 1_000_000)) == print_module(unchanged)


def test_sizes_are_the_largest_the_budget_allows() -> None:
    module = module_of("x = f32[4096,4096] parameter(0)\n ROOT r = f32[4096,4096] negate(x)")
    plan = plan_shrink([module], 100)
    assert plan.describe() == [
        "16,777,216 → 100 elements",
        "4,096 → 10: %x dimension 0, %x dimension 1, %r dimension 0, and 1 more",
    ]


def test_attributes_follow() -> None:
    body, _ = SHRINKS["halves"]
    assert attribute(shrunk(module_of(body)), "b", "slice") == "{[2:4]}"
    body, _ = SHRINKS["every other element"]
    assert attribute(shrunk(module_of(body)), "r", "slice") == "{[1:4:2]}"
    body, _ = SHRINKS["the last element"]
    assert attribute(shrunk(module_of(body)), "r", "slice") == "{[2:3], [0:2]}"
    body, _ = SHRINKS["a pad by a block"]
    assert attribute(shrunk(module_of(body)), "r", "padding") == "2_0"
    body, _ = SHRINKS["rows by number"]
    assert attribute(shrunk(module_of(body)), "r", "slice_sizes") == "{1,3}"


def test_two_modules_shrink_alike() -> None:
    """One module folds what the other computes: its array of values stays, and so does all."""
    computed = module_of(
        "x = s32[3,64] parameter(0)\n i = s32[3,64] iota(), iota_dimension=0\n"
        "ROOT r = s32[3,64] add(x, i)"
    )
    rows = ", ".join("{" + ", ".join([str(row)] * 64) + "}" for row in range(3))
    folded = module_of(
        f"x = s32[3,64] parameter(0)\n c = s32[3,64] constant({{ {rows} }})\n"
        "ROOT r = s32[3,64] add(x, c)"
    )
    assert sizes(shrunk(computed), "x") == (2, 3)
    plan = plan_shrink([computed, folded], 0)
    for module in (computed, folded):
        assert sizes(plan.apply(module), "x") == (3, 2)


def test_a_wrong_transpose_still_shows() -> None:
    body = """
        x = f32[512,4096] parameter(0)
        h = f32[8,64,4096] reshape(x)
        {result}"""
    right = "ROOT r = f32[4096,8,64] transpose(h), dimensions={2,0,1}"
    wrong = (
        "s = f32[64,8,4096] reshape(x)\n ROOT r = f32[4096,8,64] transpose(s), dimensions={2,1,0}"
    )
    modules = [module_of(body.format(result=result)) for result in (right, wrong)]
    plan = plan_shrink(modules, 0)
    first, second = (plan.apply(module) for module in modules)
    assert first.entry.root.shape is second.entry.root.shape
    assert first.entry.root.shape.element_count() < 512
    device = devices_of(1, 1)[0]
    arguments = [Inputs().arguments(first.entry, device, 0)]
    assert first_difference(*(run_module(m, arguments)[0] for m in (first, second))) is not None


@pytest.mark.parametrize(
    ("names", "budget"),
    [
        (("mlp_psum_8dev.after_spmd_partitioning", "mlp_psum_8dev.after_optimizations"), 0),
        (("ring_matmul_8dev.after_spmd_partitioning", "ring_matmul_8dev.after_optimizations"), 0),
        (("fori_loop.before_optimizations", "fori_loop.after_optimizations"), 0),
        (("branches.before_optimizations", "branches.after_optimizations"), 0),
    ],
)
def test_optimized_programs_are_still_the_same(names: tuple[str, str], budget: int) -> None:
    modules = [read_module(str(TESTDATA / f"{name}.hlo")) for name in names]
    plan = plan_shrink(modules, budget)
    first, second = (plan.apply(module) for module in modules)
    devices = devices_of(first.replica_count, first.num_partitions)
    arguments = [Inputs().arguments(first.entry, device, 0) for device in devices]
    outputs: list[Value] = [
        tuple(run_module(module, arguments, devices=devices)) for module in (first, second)
    ]
    assert first_difference(*outputs) is None


@pytest.mark.parametrize(
    "name",
    [
        "transformer_scan_8dev.after_spmd_partitioning.hlo",
        "transformer_scan_8dev.after_optimizations.hlo.gz",
        "transformer_scan_8dev.before_optimizations.hlo",
    ],
)
def test_training_steps_get_small(name: str) -> None:
    plan = plan_shrink([module := read_module(str(TESTDATA / name))], 600_000)
    assert plan.after[0] < 600_000 < 10_000_000 < plan.before[0]
    assert not verify_module(plan.apply(module))
