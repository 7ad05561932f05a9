"""The report on the call graph: its computations by importance, and why it is not flat."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hloopt.analysis.call_graph import CallContext, CallGraph, CallGraphNode


@dataclass(frozen=True, slots=True)
class CallGraphReport:
    """A call graph, and what there is to say of it."""

    graph: CallGraph
    nodes: list[CallGraphNode]
    """The entry, other control flow, what is embedded, what the entry does not reach; of each kind
    callers before callees, else in the order of the calls."""
    reached: set[CallGraphNode]
    """The entry, and all that it calls, directly or not."""
    contexts: Counter[CallContext]
    """The number of those by context."""
    call_sites: int
    not_flat: dict[str, str]
    """The reasons why the graph is not flat, by the name of the computation."""


def report_call_graph(graph: CallGraph) -> CallGraphReport:
    """The report on a call graph. O(calls + computations * log computations)."""
    entry = graph.module.entry
    reached = set(graph.visit_order(visit_unreachable_nodes=False))

    def rank(node: CallGraphNode) -> tuple[bool, bool, bool, int]:
        is_embedded = node.context is CallContext.EMBEDDED
        return node not in reached, node.computation is not entry, is_embedded, node.depth

    reasons = {node.computation.name: node.why_not_flat() for node in graph.nodes.values()}
    return CallGraphReport(
        graph=graph,
        nodes=sorted(graph.visit_order(), key=rank),
        reached=reached,
        contexts=Counter(node.context for node in reached),
        call_sites=sum(len(node.call_sites) for node in graph.nodes.values()),
        not_flat={name: reason for name, reason in reasons.items() if reason},
    )
