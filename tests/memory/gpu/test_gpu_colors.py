"""Buffers that XLA:GPU places in the memory of collectives, as its compiler does."""

from __future__ import annotations

import pytest
from tests.memory.modules import LOOP_CONDITION, assign, name_of

from hloopt.diagnostics import HloVerifyError, PipelineError
from hloopt.memory import analyze_memory
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import GPU, gpu_backend
from hloopt.memory.gpu.colors import GpuMemoryFlags
from hloopt.text import parse_module

SUM = "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
NVSHMEM = ', backend_config={"collective_backend_config":{"is_sync":true,"backend":"NVSHMEM"}}'
USER = "xla_gpu_enable_nccl_user_buffers"
SYMMETRIC = "xla_gpu_experimental_enable_nccl_symmetric_buffers"
WITH_NVSHMEM = "xla_gpu_experimental_enable_nvshmem"
SEPARATE = "xla_gpu_temp_buffer_use_separate_color"

READ = ("p = f32[64] parameter(0)", "x = f32[64] cosine(p)")
ALL_REDUCE = "c = f32[64] all-reduce(x), replica_groups={}, to_apply=sum"
ALL_REDUCE_START = "s = f32[64] all-reduce-start(x), replica_groups={}, to_apply=sum"


def gpu(*flags: str, lines: tuple[str, ...], before: str = SUM) -> BufferAssignment:
    return assign(*lines, before=before, backend=gpu_backend(GpuMemoryFlags.on(flags)))


def in_color(assignment: BufferAssignment, color: int) -> list[str]:
    """The values of a color but those of reducers."""
    return [
        name_of(assignment, value)
        for allocation in assignment.allocations
        if allocation.color == color and not allocation.is_thread_local
        for value in sorted(allocation.offsets)
    ]


COLLECTIVES = {
    "all-reduce": (ALL_REDUCE,),
    "all-gather": ("c = f32[512] all-gather(x), dimensions={0}",),
    "reduce-scatter": ("c = f32[8] reduce-scatter(x), dimensions={0}, to_apply=sum",),
    "all-to-all": ("c = f32[64] all-to-all(x), dimensions={0}",),
    "collective-permute": ("c = f32[64] collective-permute(x), source_target_pairs={{0,1}}",),
    "collective-broadcast": ("c = f32[64] collective-broadcast(x), replica_groups={{0,1}}",),
    "all-reduce-start": (ALL_REDUCE_START, "c = f32[64] all-reduce-done(s)"),
    "all-gather-start": (
        "s = (f32[64], f32[512]) all-gather-start(x), dimensions={0}",
        "c = f32[512] all-gather-done(s)",
    ),
    "collective-permute-start": (
        "s = (f32[64], f32[64], u32[], u32[]) collective-permute-start(x),"
        " source_target_pairs={{0,1}}",
        "c = f32[64] collective-permute-done(s)",
    ),
    "reduce-scatter-start": (
        "s = ((f32[64]), f32[8]) reduce-scatter-start(x), dimensions={0}, to_apply=sum",
        "c = f32[8] reduce-scatter-done(s)",
    ),
    "collective-broadcast-start": (
        "s = ((f32[64]), f32[64]) collective-broadcast-start(x), replica_groups={{0,1}}",
        "c = f32[64] collective-broadcast-done(s)",
    ),
    "send": (
        "t = token[] after-all()",
        "d = (f32[64], u32[], token[]) send(x, t), channel_id=1",
        "e = token[] send-done(d), channel_id=1",
        "c = f32[64] sine(x)",
    ),
}


@pytest.mark.parametrize(
    ("collective", "expected"),
    [
        ("all-reduce", ["x", "c"]),
        ("all-gather", ["x", "c"]),
        ("reduce-scatter", ["x", "c"]),
        ("all-to-all", ["x", "c"]),
        ("collective-permute", ["x", "c"]),
        ("collective-broadcast", []),
        ("all-reduce-start", ["x", "s"]),
        ("all-gather-start", ["x", "s.1"]),  # tables of pointers are left out
        ("collective-permute-start", ["x", "s.1", "s.2", "s.3"]),
        ("reduce-scatter-start", ["reduce-scatter", "x"]),
        ("collective-broadcast-start", []),
        ("send", []),
    ],
)
@pytest.mark.parametrize("flag", [USER, SYMMETRIC])
def test_what_collectives_read_and_write_is_in_their_memory(
    collective: str, expected: list[str], flag: str
) -> None:
    body = COLLECTIVES[collective]
    size = body[-1].split("[")[1].split("]")[0]
    lines = (*READ, *body, f"y = f32[{size}] negate(c)")
    assert in_color(gpu(lines=lines), 1) == []
    assert sorted(in_color(gpu(flag, lines=lines), 1)) == sorted(expected)


def test_nvshmem_takes_only_its_own_collectives() -> None:
    lines = (
        *READ,
        ALL_REDUCE + NVSHMEM,
        "d = f32[64] negate(c)",
        "e = f32[64] all-to-all(d), dimensions={0}",
        "y = f32[64] negate(e)",
    )
    assert in_color(gpu(WITH_NVSHMEM, lines=lines), 1) == ["x", "c"]
    assert in_color(gpu(USER, lines=lines), 1) == ["x", "c", "d", "e"]


def test_nvshmem_is_named_at_a_start_or_in_what_it_wraps() -> None:
    wrapped = "w { q = f32[64] parameter(0)\n ROOT r = f32[64] all-to-all(q), dimensions={0}%s }\n"
    start = "s = ((f32[64]), f32[64]) async-start(x), calls=w"
    end = ("c = f32[64] async-done(s)", "y = f32[64] negate(c)")
    for inner, outer in ((NVSHMEM, ""), ("", NVSHMEM)):
        lines = (*READ, start + outer, *end)
        found = gpu(WITH_NVSHMEM, lines=lines, before=wrapped % inner)
        assert in_color(found, 1) == ["r", "x"]
    assert in_color(gpu(WITH_NVSHMEM, lines=(*READ, start, *end), before=wrapped % ""), 1) == []


def test_an_all_reduce_works_in_place_unless_it_runs_on_nvshmem() -> None:
    for start, places in ((ALL_REDUCE, 1), (ALL_REDUCE + NVSHMEM, 2)):
        assignment = gpu(lines=(*READ, start, "y = f32[64] negate(c)"))
        assert len([a for a in assignment.allocations if a.kind != "thread-local"]) == 1 + places
    for start, size in ((ALL_REDUCE_START, 256), (ALL_REDUCE_START + NVSHMEM, 512)):
        lines = (*READ, start, "c = f32[64] all-reduce-done(s)", "y = f32[64] negate(c)")
        heap = next(a for a in gpu(USER, lines=lines).allocations if a.is_heap)
        assert (heap.color, heap.size) == (1, size)


def test_a_result_of_an_all_reduce_takes_the_place_of_its_own_operand_only() -> None:
    lines = (
        *READ,
        "z = f32[64] sine(p)",
        "d = (f32[64], f32[64]) all-reduce(x, z), replica_groups={}, to_apply=sum",
        "c = f32[64] get-tuple-element(d), index=0",
        "e = f32[64] get-tuple-element(d), index=1",
        'u = f32[64] custom-call(c, e, x), custom_call_target="f"',
        "y = f32[16] slice(u), slice={[0:16]}",
    )
    assignment = assign(*lines, before=SUM, backend=GPU)
    heap = next(a for a in assignment.allocations if a.kind == "temporary")
    at = {name_of(assignment, value): offset for value, offset in heap.offsets.items()}
    assert at["d.1"] == at["z"]
    assert at["d.0"] not in (at["x"], at["z"])


def test_the_state_of_a_loop_is_colored_as_a_whole() -> None:
    body = """
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  v = f32[100] get-tuple-element(q), index=1
  n = s32[] negate(j)
  w = f32[100] all-reduce(v), replica_groups={}, to_apply=sum
  ROOT r = (s32[], f32[100]) tuple(n, w) }
"""
    lines = (
        "i = s32[] parameter(0)",
        "k = s32[] copy(i)",
        "z = f32[100] broadcast(k), dimensions={}",
        "t = (s32[], f32[100]) tuple(k, z)",
        "l = (s32[], f32[100]) while(t), condition=cond, body=body",
        "g = f32[100] get-tuple-element(l), index=1",
        "y = f32[100] negate(g)",
    )
    found = in_color(gpu(USER, lines=lines, before=SUM + LOOP_CONDITION + body), 1)
    assert sorted(found) == ["l.1?", "p.1?", "q.1?", "w", "z"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ('operands_memory_spaces="{0:1}"', ["x"]),
        ("operands_memory_spaces={1:1}", ["z"]),
        ('operands_memory_spaces="{0: 1, 1: 1}"', ["x", "z"]),
        ('results_memory_spaces="{0:1}"', ["c"]),
        ('results_memory_spaces="{1:1}"', []),  # there is no such result
        ('operands_memory_spaces="{2:1}"', []),  # nor such an operand
        ('operands_memory_spaces="{7:1}"', []),
        ('operands_memory_spaces="{0:0}"', []),  # the default asks for nothing
        ('operands_memory_spaces="{0:1}",results_memory_spaces="{0:1}"', ["x", "c"]),
    ],
)
def test_custom_calls_ask_for_memory(asked: str, expected: list[str]) -> None:
    call = f'custom-call(x, z), custom_call_target="f", frontend_attributes={{{asked}}}'
    lines = (*READ, "z = f32[64] sine(p)", f"c = f32[64] {call}", "y = f32[64] negate(c)")
    assert in_color(gpu(lines=lines), 1) == expected


def test_results_of_a_custom_call_are_counted_in_its_tuple() -> None:
    call = 'custom_call_target="f", frontend_attributes={results_memory_spaces="{1:1}"}'
    lines = (
        *READ,
        f"d = (f32[64], f32[32]) custom-call(x), {call}",
        "c = f32[32] get-tuple-element(d), index=1",
        "y = f32[32] negate(c)",
    )
    assert in_color(gpu(lines=lines), 1) == ["d.1"]


@pytest.mark.parametrize(("target", "count"), [("mosaic_gpu_v2", 2), ("mosaic_gpu", 2), ("f", 0)])
def test_mosaic_kernels_that_use_multicast_are_in_collective_memory(
    target: str, count: int
) -> None:
    call = f'custom_call_target="{target}", backend_config={{xla_multimem_parameters}}'
    lines = (*READ, f"c = f32[64] custom-call(x), {call}", "y = f32[64] negate(c)")
    assert len(in_color(gpu(lines=lines), 1)) == count


@pytest.mark.parametrize("asked", ["{0:5}", "{a:b}", "{0}", "{{}:1}", "{-1:1}"])
def test_memory_that_there_is_not_is_an_error(asked: str) -> None:
    call = f'custom_call_target="f", frontend_attributes={{operands_memory_spaces="{asked}"}}'
    with pytest.raises(HloVerifyError, match="custom-call '%c': operands_memory_spaces"):
        gpu(lines=(*READ, f"c = f32[64] custom-call(x), {call}"))


def test_different_memory_for_one_buffer_is_an_error() -> None:
    call = 'custom_call_target="f", frontend_attributes={operands_memory_spaces="{0:2}"}'
    lines = (*READ, f"d = f32[64] custom-call(x), {call}", ALL_REDUCE, "y = f32[64] add(c, d)")
    assert in_color(gpu(lines=lines), 2) == ["x"]
    with pytest.raises(HloVerifyError, match=r"'%x'.* memory spaces 1 and 2"):
        gpu(USER, lines=lines)


def test_a_layout_counts_like_a_demand() -> None:
    call = 'custom_call_target="f", frontend_attributes={operands_memory_spaces="{0:2}"}'
    lines = ("p = f32[64] parameter(0)", "x = f32[64]{0:S(1)} cosine(p)")
    assert in_color(gpu(USER, lines=(*lines, ALL_REDUCE, "y = f32[64] sine(c)")), 1) == ["x", "c"]
    with pytest.raises(HloVerifyError, match="memory spaces 1 and 2"):
        gpu(lines=(*lines, f"c = f32[64] custom-call(x), {call}"))


def test_temporaries_that_are_put_together_get_their_own_color() -> None:
    alone = (*READ, "c = f32[512] all-gather(x), dimensions={0}", "y = f32[512] negate(c)")
    assert [a.color for a in gpu(SEPARATE, lines=alone).allocations if a.is_heap] == [0]
    body = COLLECTIVES["all-gather-start"]
    lines = (*READ, *body, "y = f32[512] negate(c)")
    assert sorted(in_color(gpu(SEPARATE, lines=lines), 2)) == ["s", "x"]
    assert in_color(gpu(SEPARATE, USER, lines=lines), 2) == []
    assert sorted(in_color(gpu(SEPARATE, USER, lines=lines), 1)) == ["s.1", "x"]


def test_the_report_says_that_arguments_will_be_copied() -> None:
    module = parse_module(
        f"HloModule m, is_scheduled=true\n{SUM}\nENTRY e {{ x = f32[64] parameter(0)\n"
        f"ROOT {ALL_REDUCE} }}\n"
    )
    report = analyze_memory(module, backend=gpu_backend(GpuMemoryFlags.on([USER])))
    assert any(text.startswith("2 arguments, constants or res") for text in report.assumptions)
    assert not any("copies those" in text for text in analyze_memory(module).assumptions)


def test_an_unknown_flag_is_named() -> None:
    with pytest.raises(PipelineError, match="no flag 'xla_gpu_enable_nccl_user_buffer'") as error:
        GpuMemoryFlags.on(["xla_gpu_enable_nccl_user_buffer"])
    assert USER in str(error.value.help)
