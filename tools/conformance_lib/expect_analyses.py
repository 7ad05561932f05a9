"""Expectations about what analyses find: the call graph, reachability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import More, compare, expectation
from conformance_lib.scene import Scene
from conformance_lib.selectors import find_computation, select_one
from hloopt.analysis.call_graph import CallGraph, CallGraphNode
from hloopt.analysis.common_ancestors import (
    nearest_common_ancestor_computations,
    nearest_common_ancestor_instructions,
)
from hloopt.analysis.reachability import Reachability, shortest_path
from hloopt.ir import Instruction


def _call_graph(scene: Scene, more: More) -> CallGraph:
    options = dict(more.get("options", {}))
    threads = options.pop("execution_threads", ())
    if options:
        raise RecordError(f"unknown options of the call graph: {', '.join(sorted(options))}")
    return CallGraph.build(scene.module, threads)


# -- call graph ---------------------------------------------------------------------------------


@expectation("call_graph_nodes", "options")
def call_graph_nodes(scene: Scene, expected: int, more: More) -> Iterator[str]:
    yield from compare("number of nodes", len(_call_graph(scene, more).nodes), expected)


@expectation("flattened", "options")
def flattened(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    yield from compare("flattened", _call_graph(scene, more).is_flattened, expected)


@expectation("call_graph", "options")
def call_graph(scene: Scene, expected: dict[str, dict[str, Any]], more: More) -> Iterator[str]:
    graph = _call_graph(scene, more)
    for name, facts in expected.items():
        node = graph.nodes[find_computation(scene, name)]
        found = _facts(node)
        if unknown := facts.keys() - found.keys():
            raise RecordError(f"unknown about a node: {', '.join(sorted(unknown))}")
        for key, wanted in facts.items():
            value = sorted(wanted) if isinstance(wanted, list) else wanted
            yield from compare(f"{key} of %{name}", found[key], value)


def _facts(node: CallGraphNode) -> dict[str, object]:
    return {
        "depth": node.depth,
        "context": node.context.value,
        "callsites": len(node.call_sites),
        "callees": sorted(callee.computation.name for callee in node.callees),
        "caller_callsites": len(node.caller_call_sites),
        "callers": sorted(caller.computation.name for caller in node.callers),
    }


@expectation("callsite", "options")
def callsite(scene: Scene, expected: dict[str, dict[str, Any]], more: More) -> Iterator[str]:
    graph = _call_graph(scene, more)
    for selector, wanted in expected.items():
        instruction = select_one(scene, selector)
        sites = graph.nodes[instruction.parent].call_sites
        found = [
            {"called": [callee.name for callee in site.called], "context": site.context.value}
            for site in sites
            if site.instruction is instruction
        ]
        yield from compare(f"call sites of {selector}", found, [wanted])


@expectation("visit_order", "options")
def visit_order(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    found: list[str] = []
    _call_graph(scene, more).visit(lambda node: found.append(node.computation.name))
    if unknown := expected.keys() - {"size", "last", "before"}:
        raise RecordError(f"unknown about the order: {', '.join(sorted(unknown))}")
    if "size" in expected:
        yield from compare("nodes visited", len(found), expected["size"])
    if "last" in expected:
        yield from compare("last visited", found[-1], expected["last"])
    for first, second in expected.get("before", ()):
        if found.index(first) > found.index(second):
            yield f"{first} is visited behind {second}: {found}"


@expectation("dominates", "options")
def dominates(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    graph = _call_graph(scene, more)
    for first, second, wanted in expected:
        a, b = find_computation(scene, first), find_computation(scene, second)
        yield from compare(f"{first} dominates {second}", graph.dominates(a, b), wanted)


@expectation("nearest_ancestors_in_same_computation", "options")
def nearest_ancestors(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    graph = _call_graph(scene, more)
    for first, second, wanted in expected:
        a, b = select_one(scene, first), select_one(scene, second)
        ancestors = graph.nearest_ancestors_in_same_computation(a, b)
        found = None if ancestors is None else _names(ancestors)
        names = None if wanted is None else _names(select_one(scene, w) for w in wanted)
        yield from compare(f"nearest ancestors of {first} and {second}", found, names)


@expectation("nearest_common_ancestor_instructions")
def common_instructions(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    for selectors, wanted in expected:
        starts = [select_one(scene, selector) for selector in selectors]
        found = sorted(_names(nearest_common_ancestor_instructions(starts)))
        names = sorted(_names(select_one(scene, selector) for selector in wanted))
        yield from compare(f"nearest common ancestors of {selectors}", found, names)


@expectation("nearest_common_ancestor_computations", "options")
def common_computations(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    graph = _call_graph(scene, more)
    for names, wanted in expected:
        starts = [find_computation(scene, name) for name in names]
        found = sorted(c.name for c in nearest_common_ancestor_computations(graph, starts))
        yield from compare(f"nearest common ancestors of {names}", found, sorted(wanted))


def _names(instructions: Iterable[Instruction]) -> list[str]:
    return [f"%{instruction.name}" for instruction in instructions]


# -- reachability -------------------------------------------------------------------------------


@expectation("reachable")
def reachable(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    for a, b, analysis, wanted in _pairs(scene, expected):
        what = f"%{b.name} is reachable from %{a.name}"
        yield from compare(what, analysis.reachable(a, b), wanted)
        yield from compare(f"{what} by a path", shortest_path(a, b) is not None, wanted)


@expectation("connected")
def connected(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    for a, b, analysis, wanted in _pairs(scene, expected):
        what = f"%{a.name} and %{b.name} are connected"
        yield from compare(what, analysis.connected(a, b), wanted)


def _pairs(
    scene: Scene, expected: list[list[Any]]
) -> Iterator[tuple[Instruction, Instruction, Reachability, bool]]:
    analyses: dict[Any, Reachability] = {}
    for first, second, wanted in expected:
        a, b = scene.find(first), scene.find(second)
        if a.parent not in analyses:
            analyses[a.parent] = Reachability(a.parent)
        yield a, b, analyses[a.parent], wanted
