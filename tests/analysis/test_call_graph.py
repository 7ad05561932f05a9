"""Callers and callees."""

from __future__ import annotations

import pytest

from hloopt.analysis.call_graph import CallContext, CallGraph, CallGraphNode
from hloopt.analysis.calls import callees_first, calls_by_computation, reachable_from_entry
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Module
from hloopt.text import parse_module

TEXT = """HloModule m{header}

unused {{ u = f32[] parameter(0) ROOT c0 = f32[] call(u), to_apply={{ v = f32[] parameter(0) }} }}
leaf {{ x = f32[] parameter(0) ROOT n = f32[] negate(x) }}
test {{ t = f32[] parameter(0) ROOT k = pred[] constant(true) }}
loop {{ y = f32[] parameter(0) ROOT c1 = f32[] call(y), to_apply=leaf }}
ENTRY e {{
  p = f32[] parameter(0)
  c2 = f32[] call(p), to_apply=leaf
  w = f32[] while(p), condition=test, body=loop
  ROOT c3 = f32[] call(c2), to_apply=leaf, control-predecessors={{w}}
}}
"""
ASYNC = """
wrapped { q = f32[] parameter(0) ROOT s = f32[] call(q), to_apply={ z = f32[] parameter(0) } }
ENTRY e {
  p = f32[] parameter(0)
  start = ((f32[]), f32[], s32[]) async-start(p), calls=wrapped
  update = ((f32[]), f32[], s32[]) async-update(start)
  ROOT done = f32[] async-done(update)
}
"""


def module_of(text: str = TEXT.format(header="")) -> Module:
    return parse_module(text)


def node_of(graph: CallGraph, name: str) -> CallGraphNode:
    return graph.nodes[graph.module.computations[name]]


def names(nodes: list[CallGraphNode]) -> list[str]:
    return [node.computation.name for node in nodes]


def deep_chain(depth: int) -> Module:
    """`depth` computations that each call the one before."""
    links = "\n".join(
        f"f.{i} {{ p.{i} = f32[] parameter(0) ROOT c.{i} = f32[] call(p.{i}), to_apply=f.{i - 1} }}"
        for i in range(1, depth)
    )
    return module_of(
        f"f.0 {{ p.0 = f32[] parameter(0) ROOT c.0 = f32[] negate(p.0) }}\n{links}\n"
        f"ENTRY e {{ p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f.{depth - 1} }}\n"
    )


def test_calls_are_listed_by_computation_in_order() -> None:
    module = module_of(TEXT.format(header=", is_scheduled=true"))
    calls = calls_by_computation(module)
    found = {computation.name: [c.name for c in found] for computation, found in calls.items()}
    assert found == {"unused": ["c0"], "loop": ["c1"], "e": ["c2", "w", "c3"]}


def test_callees_come_first_and_every_computation_once() -> None:
    order = callees_first(module_of())
    assert [c.name for c in order] == ["_", "unused", "leaf", "loop", "test", "e"]


def test_reachable_is_what_the_entry_calls() -> None:
    reached = reachable_from_entry(module_of())
    assert {c.name for c in reached} == {"e", "leaf", "test", "loop"}


# -- nodes --------------------------------------------------------------------------------------


def test_nodes_keep_the_order_of_the_module_and_call_sites_that_of_the_instructions() -> None:
    graph = CallGraph.build(module_of())
    assert names(list(graph.nodes.values())) == ["_", "unused", "leaf", "test", "loop", "e"]
    entry = node_of(graph, "e")
    assert [site.instruction.name for site in entry.call_sites] == ["c2", "w", "c3"]
    assert names(entry.callees) == ["leaf", "loop", "test"]
    assert (entry.depth, entry.callers, entry.caller_call_sites) == (0, [], [])


def test_callers_count_once_and_call_sites_once_per_reference() -> None:
    graph = CallGraph.build(
        module_of("""
same { t = pred[] parameter(0) ROOT n = pred[] not(t) }
ENTRY e { p = pred[] parameter(0) ROOT w = pred[] while(p), condition=same, body=same }
""")
    )
    node = node_of(graph, "same")
    assert names(node.callers) == ["e"]
    assert [site.instruction.name for site in node.caller_call_sites] == ["w", "w"]
    assert names(node_of(graph, "e").callees) == ["same"]


def test_depth_is_the_longest_way_from_a_root() -> None:
    graph = CallGraph.build(module_of())
    depths = {node.computation.name: node.depth for node in graph.nodes.values()}
    assert depths == {"_": 1, "unused": 0, "leaf": 2, "test": 1, "loop": 1, "e": 0}


def test_what_runs_both_ways_hands_both_on_to_what_it_calls() -> None:
    graph = CallGraph.build(
        module_of("""
leaf { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
mixed { y = f32[] parameter(0) ROOT c1 = f32[] call(y), to_apply=leaf }
ENTRY e {
  p = f32[] parameter(0)
  c2 = f32[] call(p), to_apply=mixed
  ROOT c3 = f32[] map(c2), dimensions={}, to_apply=mixed
}
""")
    )
    assert node_of(graph, "leaf").context is CallContext.BOTH
    contexts = [site.context for site in node_of(graph, "e").call_sites]
    assert contexts == [CallContext.CONTROL_FLOW, CallContext.EMBEDDED]


@pytest.mark.parametrize(
    ("callers", "reason"),
    [
        ("c2 = f32[] call(p), to_apply=f ROOT c3 = f32[] call(c2), to_apply=f", "from 2 places"),
        (
            "c2 = f32[] call(p), to_apply=f ROOT c3 = f32[] map(c2), dimensions={}, to_apply=f",
            "control flow and embedded",
        ),
        (
            "c2 = f32[] map(p), dimensions={}, to_apply=f"
            " ROOT c3 = f32[] map(c2), dimensions={}, to_apply=f",
            None,
        ),
        ("ROOT c2 = f32[] call(p), to_apply=f", None),
    ],
)
def test_a_graph_is_flat_unless_control_flow_is_shared(callers: str, reason: str | None) -> None:
    graph = CallGraph.build(
        module_of(
            "f { x = f32[] parameter(0) ROOT n = f32[] negate(x) }\n"
            f"ENTRY e {{ p = f32[] parameter(0) {callers} }}"
        )
    )
    found = node_of(graph, "f").why_not_flat()
    assert found is None if reason is None else reason in (found or "")
    assert graph.is_flattened == (reason is None)


def test_an_asynchronous_start_calls_for_its_whole_chain() -> None:
    graph = CallGraph.build(module_of(ASYNC))
    wrapper = node_of(graph, "wrapped")
    assert wrapper.is_async_wrapper
    assert [site.instruction.name for site in wrapper.caller_call_sites] == ["start"]
    assert graph.is_flattened


def test_other_threads_are_no_part_of_the_graph() -> None:
    module = module_of(ASYNC.replace("calls=", 'async_execution_thread="x", calls='))
    graph = CallGraph.build(module, ("main",))
    entry = node_of(graph, "e")
    assert list(graph.nodes.values()) == [entry]
    assert [site.instruction.name for site in entry.call_sites] == ["start"]
    assert entry.callees == []
    other = CallGraph.build(module, ("x",))
    assert names(other.visit_order()) == ["_", "wrapped"]
    assert other.visit_order(visit_unreachable_nodes=False) == []


def test_a_computation_that_calls_itself_is_an_error() -> None:
    module = module_of("""
f { x = f32[] parameter(0) ROOT n = f32[] call(x), to_apply={ y = f32[] parameter(0) } }
ENTRY e { p = f32[] parameter(0) ROOT c = f32[] negate(p) }
""")
    callee = module.computations["f"]
    callee.root.set_called((callee,))
    with pytest.raises(HloVerifyError, match="depends on itself"):
        CallGraph.build(module)


# -- visits -------------------------------------------------------------------------------------


def test_a_visit_is_of_callees_first_from_all_roots_or_the_entry() -> None:
    graph = CallGraph.build(module_of())
    assert names(graph.visit_order()) == ["_", "unused", "leaf", "loop", "test", "e"]
    reached = graph.visit_order(visit_unreachable_nodes=False)
    assert names(reached) == ["leaf", "loop", "test", "e"]


def test_an_error_ends_a_visit() -> None:
    seen: list[str] = []

    def visitor(node: CallGraphNode) -> None:
        seen.append(node.computation.name)
        if seen[-1] == "leaf":
            raise HloVerifyError("enough")

    with pytest.raises(HloVerifyError, match="enough"):
        CallGraph.build(module_of()).visit(visitor)
    assert seen == ["_", "unused", "leaf"]


def test_a_visit_that_returns_true_goes_on_and_is_remembered() -> None:
    graph = CallGraph.build(module_of())
    seen: list[str] = []

    def visitor(node: CallGraphNode) -> bool:
        seen.append(node.computation.name)
        return node.computation.name == "unused"

    assert graph.visit(visitor)
    assert seen == names(graph.visit_order())
    assert not graph.visit(visitor, visit_unreachable_nodes=False)


# -- two computations, two instructions ---------------------------------------------------------


def test_dominance_counts_all_roots() -> None:
    module = module_of("""
leaf { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
unused { u = f32[] parameter(0) ROOT c0 = f32[] call(u), to_apply=leaf }
mid { y = f32[] parameter(0) ROOT c1 = f32[] call(y), to_apply={ z = f32[] parameter(0) } }
ENTRY e {
  p = f32[] parameter(0)
  c2 = f32[] call(p), to_apply=leaf
  ROOT c3 = f32[] call(c2), to_apply=mid
}
""")
    graph = CallGraph.build(module)
    entry, leaf, mid = (module.computations[name] for name in ("e", "leaf", "mid"))
    inner = module.computations["_"]
    assert not graph.dominates(entry, leaf)
    assert graph.dominates(entry, inner)
    assert graph.dominates(mid, inner)
    assert not graph.dominates(inner, mid)
    assert graph.dominates(leaf, leaf)


def test_reaching_is_calling_directly_or_not() -> None:
    module = module_of()
    graph = CallGraph.build(module)
    entry, leaf, test = (module.computations[name] for name in ("e", "leaf", "test"))
    unused = module.computations["unused"]
    assert graph.can_reach(entry, leaf)
    assert graph.can_reach(leaf, leaf)
    assert not graph.can_reach(leaf, entry)
    assert not graph.can_reach(test, leaf)
    assert not graph.can_reach(unused, leaf)


def test_the_nearest_ancestor_of_an_asynchronous_computation_is_its_start() -> None:
    module = module_of(ASYNC)
    inner = module.computations["_"].root
    done = module.entry.root
    found = CallGraph.build(module).nearest_ancestors_in_same_computation(inner, done)
    assert found is not None
    assert [instruction.name for instruction in found] == ["start", "done"]


def test_there_are_no_nearest_ancestors_across_roots_and_shared_computations() -> None:
    module = module_of()
    graph = CallGraph.build(module)
    leaf, loop = module.computations["leaf"].root, module.computations["loop"].root
    unused = module.computations["unused"].root
    assert graph.nearest_ancestors_in_same_computation(leaf, loop) is None
    assert graph.nearest_ancestors_in_same_computation(unused, loop) is None


@pytest.mark.slow
def test_a_long_chain_of_calls_is_no_trouble() -> None:
    depth = 100_000
    module = deep_chain(depth)
    graph = CallGraph.build(module)
    bottom, top = module.computations["f.0"], module.computations[f"f.{depth - 1}"]
    assert graph.nodes[bottom].depth == depth
    assert graph.is_flattened
    assert graph.dominates(top, bottom)
    assert not graph.dominates(bottom, top)
    assert graph.can_reach(module.entry, bottom)
    found = graph.nearest_ancestors_in_same_computation(bottom.root, module.entry.root)
    assert found == (module.entry.root, module.entry.root)


def test_many_calls_of_one_computation_are_no_trouble() -> None:
    count = 100_000
    calls = "\n".join(
        f"  c.{i} = f32[] call({f'c.{i - 1}' if i else 'p'}), to_apply=f" for i in range(count)
    )
    module = module_of(
        "f { x = f32[] parameter(0) ROOT n = f32[] negate(x) }\n"
        f"ENTRY e {{\n  p = f32[] parameter(0)\n{calls}\n  ROOT r = f32[] negate(p)\n}}\n"
    )
    graph = CallGraph.build(module)
    assert len(node_of(graph, "f").caller_call_sites) == count
    assert names(node_of(graph, "f").callers) == ["e"]


def test_call_sites_are_listed_by_callee_once_per_reference() -> None:
    text = TEXT.format(header="").replace("condition=test, body=loop", "condition=test, body=test")
    entry = node_of(CallGraph.build(module_of(text)), "e")
    found = {
        callee.computation.name: [site.instruction.name for site in sites]
        for callee, sites in entry.sites_by_callee().items()
    }
    assert found == {"leaf": ["c2", "c3"], "test": ["w", "w"]}
