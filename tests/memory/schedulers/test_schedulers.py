"""Orders that memory schedulers find."""

from __future__ import annotations

import pytest

from hloopt.analysis.dataflow import Dataflow
from hloopt.diagnostics import HloVerifyError
from hloopt.memory.backends import CPU, GPU
from hloopt.memory.buffers import Buffers
from hloopt.memory.schedulers import Algorithm, fragmentation, schedule_module
from hloopt.memory.schedulers.schedule import minimum_memory, value_sizes
from hloopt.text import parse_module

WIDE = """HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[1000] custom-call(a), custom_call_target="f"
  c = f32[1000] custom-call(a), custom_call_target="f"
  d = f32[2] custom-call(b), custom_call_target="f"
  x = f32[2] custom-call(c), custom_call_target="f"
  ROOT t = (f32[2], f32[2]) tuple(d, x)
}
"""


def order(text: str, algorithm: str) -> list[str]:
    module = parse_module(text)
    return [i.name for i in schedule_module(module, Algorithm(algorithm)).orders[module.entry]]


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("post-order", "abdcxt"),
        ("bfs", "abcdxt"),
        ("trivial", "abdcxt"),
        ("dfs", "abdcxt"),
        ("list", "acxbdt"),  # of equals the one queued last
    ],
)
def test_orders_of_a_wide_graph(algorithm: str, expected: str) -> None:
    assert "".join(order(WIDE, algorithm)) == expected


def test_the_default_is_the_best_of_three_and_prefers_the_list_scheduler() -> None:
    assert schedule_module(parse_module(WIDE)).algorithm is Algorithm.LIST


def test_depth_first_visits_what_many_wait_for_first() -> None:
    text = """HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  small = f32[4] custom-call(a), custom_call_target="f"
  large = f32[400] custom-call(a), custom_call_target="f"
  ROOT r = f32[4] custom-call(small, large), custom_call_target="f"
}
"""
    assert order(text, "dfs") == ["a", "large", "small", "r"]
    assert order(text, "post-order") == ["a", "small", "large", "r"]


def test_scalars_go_first_in_a_list_schedule() -> None:
    text = """HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  s = f32[] parameter(1)
  b = f32[4] sine(a)
  n = f32[] negate(s)
  k = f32[4] broadcast(n), dimensions={}
  ROOT r = f32[4] add(b, k)
}
"""
    found = order(text, "list")
    assert found.index("n") < found.index("b")


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_control_dependencies_and_operands_are_kept(algorithm: Algorithm) -> None:
    module = parse_module(WIDE)
    by_name = {i.name: i for i in module.entry.instructions}
    by_name["c"].add_control_predecessor(by_name["d"])
    for computation, found in schedule_module(module, algorithm).orders.items():
        place = {instruction: number for number, instruction in enumerate(found)}
        assert len(found) == len(computation)
        for instruction in found:
            for before in (*instruction.operands, *instruction.control_predecessors):
                assert place[before] < place[instruction]


def test_minimum_memory_is_the_largest_sum_of_live_values_without_constants() -> None:
    module = parse_module("""HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  k = f32[4] constant({1, 2, 3, 4})
  b = f32[8] concatenate(a, k), dimensions={0}
  ROOT c = f32[2] slice(b), slice={[0:2]}
}
""")
    flow = Dataflow.of(module)
    orders = {module.entry: list(module.entry.instructions)}
    assert minimum_memory(Buffers.of(flow), orders, value_sizes(flow)) == 16 + 32 + 8


def test_fragmentation_is_what_packing_adds_to_live_values() -> None:
    module = parse_module("""HloModule m, is_scheduled=true
ENTRY e {
  a = s8[8] parameter(0)
  b = s8[10] custom-call(a), custom_call_target="f"
  c = s8[20] custom-call(b), custom_call_target="f"
  ROOT d = s8[4] custom-call(c), custom_call_target="f"
}
""")
    buffers = Buffers.of(Dataflow.of(module))
    live = 8 + 10 + 20
    assert fragmentation(buffers, CPU) == fragmentation(buffers) == 128 + 8 - live
    assert fragmentation(buffers, GPU) == 512 + 8 - live


def test_a_cycle_of_control_dependencies_is_an_error() -> None:
    module = parse_module(WIDE)
    by_name = {i.name: i for i in module.entry.instructions}
    by_name["b"].add_control_predecessor(by_name["d"])
    with pytest.raises(HloVerifyError):
        schedule_module(module, Algorithm.DFS)
    with pytest.raises(HloVerifyError):
        schedule_module(module, Algorithm.BFS)


CALLS = """HloModule m
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = pred[] compare(p, q), direction=LT }
f { x = f32[100] parameter(0)
  ROOT y = f32[100] sort(x), dimensions={0}, to_apply=less }
g { x = f32[100] parameter(0)
  ROOT y = f32[100] sort(x), dimensions={0}, to_apply=less }
ENTRY e { a = f32[100] parameter(0)
  c = f32[100] call(a), to_apply=f
  b = f32[100] parameter(1)
  d = f32[100] call(b), to_apply=g
  ROOT m = f32[100] multiply(c, d) }
"""
PERMUTE = """HloModule m
ENTRY e { a = f32[100] parameter(0)
  s = (f32[100], f32[100]) collective-permute-start(a), source_target_pairs={{0,1}}
  d = f32[100] collective-permute-done(s)
  c = f32[150] custom-call(a), custom_call_target="f"
  ROOT r = (f32[100], f32[150]) tuple(d, c) }
"""
READERS = """HloModule m
ENTRY e { a = f32[100] parameter(0)
  s = f32[100] sine(a)
  n = f32[100] negate(a)
  c = f32[100] cosine(a)
  ROOT r = (f32[100], f32[100], f32[100]) tuple(c, s, n) }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CALLS, "bacdm"),  # a call defines its result: parameters, which need nothing, go first
        (PERMUTE, "acsdr"),  # a start makes what it sends and what it receives
        (READERS, "anscr"),  # the readers of a value are queued in post-order
    ],
)
def test_list_orders_of_xla_gpu(text: str, expected: str) -> None:
    assert "".join(order(text, "list")) == expected


@pytest.mark.parametrize(("elements", "first"), [(2052, "start"), (2053, "large")])
def test_what_a_start_passes_on_counts_once_in_dfs_orders_of_xla(elements: int, first: str) -> None:
    """A permute of 8,192 bytes and its table of 16 weigh 8,208; XLA:GPU's compiler walks so."""
    text = f"""HloModule m
ENTRY e {{
  p = f32[2048] parameter(0)
  start = (f32[2048], f32[2048]) collective-permute-start(p), source_target_pairs={{{{0,1}}}}
  done = f32[2048] collective-permute-done(start)
  large = f32[{elements}] custom-call(p), custom_call_target="x"
  ROOT r = (f32[{elements}], f32[2048]) tuple(large, done)
}}"""
    assert order(text, "dfs")[1] == first


def test_loops_and_branches_make_all_of_their_results_in_dfs_orders_of_xla() -> None:
    text = """HloModule m
f { x = f32[64] parameter(0) ROOT y = f32[64] negate(x) }
ENTRY e {
  p = f32[64] parameter(0)
  i = s32[] parameter(1)
  small = f32[32] custom-call(p), custom_call_target="x"
  branch = f32[64] conditional(i, p, p), branch_computations={f, f}
  ROOT r = (f32[32], f32[64]) tuple(small, branch)
}"""
    found = order(text, "dfs")
    assert found.index("branch") < found.index("small")


def test_calls_make_no_bytes_in_dfs_orders_of_xla() -> None:
    text = """HloModule m
f { x = f32[100] parameter(0)
  ROOT y = f32[100] negate(x) }
ENTRY e { a = f32[100] parameter(0)
  c = f32[100] call(a), to_apply=f
  n = f32[4] parameter(1)
  s = f32[4] sine(n)
  ROOT r = (f32[100], f32[4]) tuple(c, s) }
"""
    assert "".join(order(text, "dfs")) == "nsacr"


LOOP = """HloModule m
cond { p = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT }
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  v = f32[100] get-tuple-element(q), index=1
  k = s32[] negate(j)
  w = f32[100] negate(v)
  ROOT r = (s32[], f32[100]) tuple(k, w) }
ENTRY e { a = s32[] parameter(0)
  b = f32[100] parameter(1)
  c = s32[] negate(a)
  d = f32[100] negate(b)
  t = (s32[], f32[100]) tuple(c, d)
  ROOT l = (s32[], f32[100]) while(t), condition=cond, body=body }
"""
DYNAMIC = """HloModule m
ENTRY e { a = f32[5] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=5] set-dimension-size(a, n), dimensions={0}
  b = f32[<=5] custom-call(d), custom_call_target="f"
  ROOT c = f32[<=5] custom-call(b), custom_call_target="f" }
"""
HOST = """HloModule m
ENTRY e { a = f32[100] parameter(0)
  b = f32[100]{0:S(5)} custom-call(a), custom_call_target="f"
  c = f32[100]{0:S(5)} custom-call(b), custom_call_target="f"
  ROOT d = f32[100] custom-call(c), custom_call_target="f" }
"""
CONDITIONAL = """HloModule m
f { ROOT x = f32[] parameter(0) }
g { y = f32[] parameter(0)
  ROOT n = f32[] copy(y) }
ENTRY e { p = pred[] parameter(0)
  k = f32[] constant(1)
  c = f32[] copy(k)
  ROOT r = f32[] conditional(p, c, k), true_computation=f, false_computation=g }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOOP, 1245),  # the state counts twice while it is passed on
        (CONDITIONAL, 9),  # so do the results of branches, which share one buffer
        (DYNAMIC, 64),  # without the sizes of dimensions
        (HOST, 800),  # host memory is free
    ],
)
def test_peaks_that_xla_gpu_compares(text: str, expected: int) -> None:
    peaks = schedule_module(parse_module(text), backend=GPU).peaks
    assert list(peaks) == [Algorithm.LIST, Algorithm.DFS, Algorithm.POST_ORDER]
    assert set(peaks.values()) == {expected}
