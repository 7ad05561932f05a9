"""The report on the call graph as a terminal page: a table or a tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from hloopt.analysis.call_graph import CallContext, CallGraphNode
from hloopt.diagnostics import counted
from hloopt.reports.console.units import middle, page_width
from hloopt.reports.structure.call_graph import CallGraphReport
from hloopt.reports.structure.call_tree import tree_lines

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


def render_call_table(report: CallGraphReport, console: Console, *, top: int) -> None:
    """Print a row for at most `top` computations, and why the graph is not flat."""
    _print_summary(report, console)
    console.print(_table(report.nodes[:top]), width=page_width(console))
    _print_rest(len(report.nodes) - top, console)
    _print_flatness(report, console)


def render_call_tree(report: CallGraphReport, console: Console, *, top: int) -> None:
    """Print the calls below the entry and below what nothing calls, at most `top` lines."""
    from rich.text import Text

    _print_summary(report, console)
    lines = list(tree_lines([node for node in report.nodes if not node.callers]))
    for line in lines[:top]:
        console.print(Text(line, no_wrap=True, overflow="ellipsis"))
    _print_rest(len(lines) - top, console)
    _print_flatness(report, console)


def _print_summary(report: CallGraphReport, console: Console) -> None:
    from rich.text import Text

    contexts, nodes = report.contexts, report.graph.nodes
    parts = [f"{contexts[c]:,} {_words(c)}" for c in CallContext if contexts[c]]
    if len(report.reached) < len(nodes):
        parts.append(f"{len(nodes) - len(report.reached):,} unreachable from the entry")
    console.print(
        Text.assemble(
            "Call graph of ",
            (report.graph.module.name, "bold"),
            f": {counted(len(nodes), 'computation')}, {counted(report.call_sites, 'call site')}",
        )
    )
    console.print(Text(", ".join(parts)))


def _words(context: CallContext) -> str:
    return context.replace("_", " ")


def _table(nodes: Sequence[CallGraphNode]) -> ReportTable:
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


def _print_flatness(report: CallGraphReport, console: Console) -> None:
    from rich.text import Text

    reasons = report.not_flat
    if not reasons:
        console.print("flat: no control flow is shared")
        return
    console.print("not flat:")
    for name, reason in islice(reasons.items(), _MOST_REASONS):
        console.print(Text(f"  %{name}: {reason}"))
    if len(reasons) > _MOST_REASONS:
        rest = f"  … and {len(reasons) - _MOST_REASONS:,} more; --format json has all"
        console.print(rest, style="dim")
