"""Orders that memory schedulers find."""

from __future__ import annotations

import pytest

from hloopt.analysis.dataflow import Dataflow
from hloopt.diagnostics import HloVerifyError
from hloopt.memory.buffers import Buffers
from hloopt.memory.schedulers import Algorithm, schedule_module
from hloopt.memory.schedulers.schedule import minimum_memory
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
    assert minimum_memory(flow, Buffers.of(flow), orders) == 16 + 32 + 8


def test_a_cycle_of_control_dependencies_is_an_error() -> None:
    module = parse_module(WIDE)
    by_name = {i.name: i for i in module.entry.instructions}
    by_name["b"].add_control_predecessor(by_name["d"])
    with pytest.raises(HloVerifyError):
        schedule_module(module, Algorithm.DFS)
    with pytest.raises(HloVerifyError):
        schedule_module(module, Algorithm.BFS)
