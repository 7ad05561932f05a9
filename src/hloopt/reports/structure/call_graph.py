"""The call graph: as a table, as a tree, as Graphviz text, as JSON."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from hloopt.analysis.call_graph import CallContext, CallGraph, CallGraphNode
from hloopt.diagnostics import counted
from hloopt.reports.console.units import middle, page_width
from hloopt.reports.structure.call_tree import calls_of, sites_text, tree_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

_CONTEXT_STYLES = {
    CallContext.CONTROL_FLOW: "blue",
    CallContext.EMBEDDED: "cyan",
    CallContext.BOTH: "yellow",
}
_MOST_REASONS = 5


def render_table(graph: CallGraph, console: Console, *, top: int) -> None:
    """Print a row for at most `top` computations, and why the graph is not flat."""
    _print_summary(graph, console)
    nodes = _most_important_first(graph)
    console.print(_table(nodes[:top]), width=page_width(console))
    _print_rest(len(nodes) - top, console)
    _print_flatness(graph, console)


def render_tree(graph: CallGraph, console: Console, *, top: int) -> None:
    """Print the calls below the entry and below what nothing calls, at most `top` lines."""
    from rich.text import Text

    _print_summary(graph, console)
    lines = list(tree_lines([n for n in _most_important_first(graph) if not n.callers]))
    for line in lines[:top]:
        console.print(Text(line, no_wrap=True, overflow="ellipsis"))
    _print_rest(len(lines) - top, console)
    _print_flatness(graph, console)


def _most_important_first(graph: CallGraph) -> list[CallGraphNode]:
    """The entry, other control flow, what is embedded, what the entry does not reach.

    Of each kind callers before callees, else in the order of the calls.
    """
    entry = graph.module.entry
    reached = set(graph.visit_order(visit_unreachable_nodes=False))

    def rank(node: CallGraphNode) -> tuple[bool, bool, bool, int]:
        is_embedded = node.context is CallContext.EMBEDDED
        return node not in reached, node.computation is not entry, is_embedded, node.depth

    return sorted(graph.visit_order(), key=rank)


def _print_summary(graph: CallGraph, console: Console) -> None:
    from rich.text import Text

    reached = graph.visit_order(visit_unreachable_nodes=False)
    contexts = Counter(node.context for node in reached)
    parts = [f"{contexts[c]:,} {_words(c)}" for c in CallContext if contexts[c]]
    if len(reached) < len(graph.nodes):
        parts.append(f"{len(graph.nodes) - len(reached):,} unreachable from the entry")
    sites = sum(len(node.call_sites) for node in graph.nodes.values())
    console.print(
        Text.assemble(
            "Call graph of ",
            (graph.module.name, "bold"),
            f": {counted(len(graph.nodes), 'computation')}, {counted(sites, 'call site')}",
        )
    )
    console.print(Text(", ".join(parts)))


def _words(context: CallContext) -> str:
    return context.replace("_", " ")


# -- table --------------------------------------------------------------------------------------


def _table(nodes: list[CallGraphNode]) -> ReportTable:
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    table.add_column("computation", cut=middle)
    table.add_column("context")
    for head in ("instrs", "depth", "callers", "callees"):
        table.add_column(head, justify="right", stays=head == "depth")
    table.add_column("called by")
    for node in nodes:
        table.add_row(
            Text(node.computation.name, style="bold" if node.computation.is_entry else ""),
            Text(_words(node.context), style=_CONTEXT_STYLES[node.context]),
            f"{len(node.computation):,}",
            f"{node.depth:,}",
            f"{len(node.callers):,}",
            f"{len(node.callees):,}",
            partial(_called_by, node),
        )
    return table


def _called_by(node: CallGraphNode, width: int) -> Text:
    """The first call site, and how many more there are."""
    from rich.text import Text

    if not node.caller_call_sites:
        return Text("(the entry)" if node.computation.is_entry else "(nothing)")
    more = len(node.caller_call_sites) - 1
    rest = f" +{more:,}" if more else ""
    first = middle(node.caller_call_sites[0].instruction.name, width - len(rest))
    return Text(first + rest, style="yellow" if node.why_not_flat() else "")


def _print_rest(count: int, console: Console) -> None:
    if count > 0:
        console.print(f"… and {count:,} more; --top shows them", style="dim")


def _print_flatness(graph: CallGraph, console: Console) -> None:
    from rich.text import Text

    reasons = _reasons(graph)
    if not reasons:
        console.print("flat: no control flow is shared")
        return
    console.print("not flat:")
    for name, reason in islice(reasons.items(), _MOST_REASONS):
        console.print(Text(f"  %{name}: {reason}"))
    if len(reasons) > _MOST_REASONS:
        rest = f"  … and {len(reasons) - _MOST_REASONS:,} more; --format json has all"
        console.print(rest, style="dim")


def _reasons(graph: CallGraph) -> dict[str, str]:
    """The reason why the graph is not flat, by the name of the computation."""
    found = {node.computation.name: node.why_not_flat() for node in graph.nodes.values()}
    return {name: reason for name, reason in found.items() if reason}


# -- for programs -------------------------------------------------------------------------------


def call_graph_to_dot(graph: CallGraph) -> str:
    """The graph as Graphviz text: what is embedded is dashed, what is not flat is coloured."""
    lines = [f"digraph {_quoted(graph.module.name)} {{", "  node [shape=box]"]
    for node in graph.nodes.values():
        name = node.computation.name
        style = "dashed" if node.context is CallContext.EMBEDDED else "solid"
        style = "bold" if node.computation.is_entry else style
        color = ", color=orange" if node.why_not_flat() else ""
        label = _quoted(f"{name}\n{counted(len(node.computation), 'instruction')}")
        lines.append(f"  {_quoted(name)} [label={label}, style={style}{color}]")
    for node in graph.nodes.values():
        for callee, sites in calls_of(node).items():
            ends = f"{_quoted(node.computation.name)} -> {_quoted(callee.computation.name)}"
            lines.append(f"  {ends} [label={_quoted(sites_text(sites))}]")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def call_graph_to_json(graph: CallGraph) -> dict[str, Any]:
    """The graph as plain data, computations in the order of the module."""
    reached = set(graph.visit_order(visit_unreachable_nodes=False))
    return {
        "module": graph.module.name,
        "entry": graph.module.entry.name,
        "is_flattened": graph.is_flattened,
        "computations": [
            {
                "name": node.computation.name,
                "execution_thread": node.computation.execution_thread,
                "instructions": len(node.computation),
                "context": node.context.value,
                "depth": node.depth,
                "is_reachable": node in reached,
                "why_not_flat": node.why_not_flat(),
                "callers": [caller.computation.name for caller in node.callers],
                "callees": [callee.computation.name for callee in node.callees],
                "caller_call_sites": [
                    {
                        "instruction": site.instruction.name,
                        "computation": site.instruction.parent.name,
                    }
                    for site in node.caller_call_sites
                ],
                "call_sites": [
                    {
                        "instruction": site.instruction.name,
                        "opcode": site.instruction.opcode.value,
                        "context": site.context.value,
                        "called": [called.name for called in site.called],
                    }
                    for site in node.call_sites
                ],
            }
            for node in graph.nodes.values()
        ],
    }
