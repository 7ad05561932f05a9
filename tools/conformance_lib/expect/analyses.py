"""Expectations about what analyses find: the call graph, reachability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from conformance_lib.expectations import More, compare, expectation
from conformance_lib.forms import (
    BOOL,
    INT,
    TEXT,
    either,
    keys,
    list_of,
    mapping,
    only,
    optional_list,
    row,
)
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import COMPUTATION, NAME, SELECTOR
from conformance_lib.selectors import find_computation, select_one
from hloopt.analysis.call_graph import CallGraph, CallGraphNode
from hloopt.analysis.common_ancestors import (
    nearest_common_ancestor_computations,
    nearest_common_ancestor_instructions,
)
from hloopt.analysis.reachability import Reachability, shortest_path
from hloopt.ir import Instruction

_OPTIONS = keys(
    {},
    {"execution_threads": optional_list(TEXT), "visit_unreachable_nodes": BOOL, "api": TEXT},
    what="option of the call graph",
)
_CONTEXT = only("control_flow", "embedded", "both", "none")
_NODE = {
    "depth": INT,
    "context": _CONTEXT,
    "callsites": INT,
    "callees": optional_list(NAME),
    "caller_callsites": INT,
    "callers": optional_list(NAME),
}
_ORDER = keys(
    {},
    {
        "size": INT,
        "last": NAME,
        "before": list_of(row(NAME, NAME)),
        "set": optional_list(NAME),
    },
    what="fact about the order",
)


def _options(scene: Scene, more: More) -> dict[str, Any]:
    """The options of the record, and those of the expectation instead."""
    return {**scene.options, **more.get("options", {})}


def _call_graph(scene: Scene, more: More) -> CallGraph:
    return CallGraph.build(scene.module, _options(scene, more).get("execution_threads", ()))


# -- call graph ---------------------------------------------------------------------------------


@expectation("call_graph_nodes", INT, options=_OPTIONS)
def call_graph_nodes(scene: Scene, expected: int, more: More) -> Iterator[str]:
    yield from compare("number of nodes", len(_call_graph(scene, more).nodes), expected)


@expectation("flattened", BOOL, options=_OPTIONS)
def flattened(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    yield from compare("flattened", _call_graph(scene, more).is_flattened, expected)


@expectation(
    "call_graph", mapping(COMPUTATION, keys({}, _NODE, what="fact about a node")), options=_OPTIONS
)
def call_graph(scene: Scene, expected: dict[str, dict[str, Any]], more: More) -> Iterator[str]:
    graph = _call_graph(scene, more)
    for name, facts in expected.items():
        node = graph.nodes[find_computation(scene, name)]
        found = _facts(node)
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


@expectation(
    "callsite",
    mapping(SELECTOR, keys({"called": list_of(NAME), "context": _CONTEXT})),
    options=_OPTIONS,
)
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


@expectation("visit_order", _ORDER, options=_OPTIONS)
def visit_order(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    found: list[str] = []
    everything = _options(scene, more).get("visit_unreachable_nodes", True)
    graph = _call_graph(scene, more)
    graph.visit(
        lambda node: found.append(node.computation.name), visit_unreachable_nodes=everything
    )
    if "set" in expected:
        yield from compare("computations visited", sorted(found), sorted(expected["set"]))
    if "size" in expected:
        yield from compare("nodes visited", len(found), expected["size"])
    if "last" in expected:
        yield from compare("last visited", found[-1:], [expected["last"]])
    for first, second in expected.get("before", ()):
        if missing := {first, second} - set(found):
            yield f"not visited: {', '.join(sorted(missing))}"
        elif found.index(first) > found.index(second):
            yield f"{first} is visited behind {second}: {found}"


@expectation("dominates", list_of(row(COMPUTATION, COMPUTATION, BOOL)), options=_OPTIONS)
def dominates(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    graph = _call_graph(scene, more)
    for first, second, wanted in expected:
        a, b = find_computation(scene, first), find_computation(scene, second)
        yield from compare(f"{first} dominates {second}", graph.dominates(a, b), wanted)


@expectation(
    "nearest_ancestors_in_same_computation",
    list_of(row(SELECTOR, SELECTOR, either(only(None), row(SELECTOR, SELECTOR)))),
    options=_OPTIONS,
)
def nearest_ancestors(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    graph = _call_graph(scene, more)
    for first, second, wanted in expected:
        a, b = select_one(scene, first), select_one(scene, second)
        ancestors = graph.nearest_ancestors_in_same_computation(a, b)
        found = None if ancestors is None else _names(ancestors)
        names = None if wanted is None else _names(select_one(scene, w) for w in wanted)
        yield from compare(f"nearest ancestors of {first} and {second}", found, names)


@expectation(
    "nearest_common_ancestor_instructions",
    list_of(row(list_of(SELECTOR), optional_list(SELECTOR))),
    options=_OPTIONS,
)
def common_instructions(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    for selectors, wanted in expected:
        starts = [select_one(scene, selector) for selector in selectors]
        found = sorted(_names(nearest_common_ancestor_instructions(starts)))
        names = sorted(_names(select_one(scene, selector) for selector in wanted))
        yield from compare(f"nearest common ancestors of {selectors}", found, names)


@expectation(
    "nearest_common_ancestor_computations",
    list_of(row(list_of(COMPUTATION), optional_list(COMPUTATION))),
    options=_OPTIONS,
)
def common_computations(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    graph = _call_graph(scene, more)
    for names, wanted in expected:
        starts = [find_computation(scene, name) for name in names]
        found = sorted(c.name for c in nearest_common_ancestor_computations(graph, starts))
        yield from compare(f"nearest common ancestors of {names}", found, sorted(wanted))


def _names(instructions: Iterable[Instruction]) -> list[str]:
    return [f"%{instruction.name}" for instruction in instructions]


# -- reachability -------------------------------------------------------------------------------


@expectation("reachable", list_of(row(NAME, NAME, BOOL)))
def reachable(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    for a, b, analysis, wanted in _pairs(scene, expected):
        what = f"%{b.name} is reachable from %{a.name}"
        yield from compare(what, analysis.reachable(a, b), wanted)
        yield from compare(f"{what} by a path", shortest_path(a, b) is not None, wanted)


@expectation("connected", list_of(row(NAME, NAME, BOOL)))
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
