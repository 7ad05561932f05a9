"""The call graph as Graphviz text."""

from __future__ import annotations

from hloopt.analysis.call_graph import CallContext, CallGraph
from hloopt.diagnostics import counted
from hloopt.reports.graphs.dot import quoted
from hloopt.reports.structure.call_tree import sites_text


def call_graph_to_dot(graph: CallGraph) -> str:
    """The graph as Graphviz text: what is embedded is dashed, what is not flat is coloured."""
    lines = [f"digraph {quoted(graph.module.name)} {{", "  node [shape=box]"]
    for node in graph.nodes.values():
        name = node.computation.name
        style = "dashed" if node.context is CallContext.EMBEDDED else "solid"
        style = "bold" if node.computation.is_entry else style
        color = ", color=orange" if node.why_not_flat() else ""
        label = quoted(f"{name}\n{counted(len(node.computation), 'instruction')}")
        lines.append(f"  {quoted(name)} [label={label}, style={style}{color}]")
    for node in graph.nodes.values():
        for callee, sites in node.sites_by_callee().items():
            ends = f"{quoted(node.computation.name)} -> {quoted(callee.computation.name)}"
            lines.append(f"  {ends} [label={quoted(sites_text(sites))}]")
    return "\n".join([*lines, "}"]) + "\n"
