"""`hloopt analyze call-graph`: which computations there are, and what calls them."""

from __future__ import annotations

import click

from hloopt.commands.common import HloCommand, color_option, format_option, make_console, print_json


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--tree", "view", flag_value="tree", help="draw the calls below the entry")
@click.option("--dot", "view", flag_value="dot", help="write Graphviz text: pipe it into `dot`")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=40,
    show_default=True,
    help="rows of the table, lines of the tree",
)
@click.option(
    "--execution-threads",
    default="",
    metavar="NAME,…",
    help="only computations on these; default: on all",
)
@format_option
@color_option
def command(
    files: tuple[str, ...],
    view: str | None,
    limit: int,
    execution_threads: str,
    output_format: str,
    color: str,
) -> int:
    """Computations with their callers, and whether the call graph is flat.

    A computation runs as control flow (the entry, calls, loops, branches) or embedded in an
    instruction (reducers, fusions). Its depth is the longest way from a computation that nothing
    calls. A graph is flat where nothing runs both ways and all control flow has one call site;
    flatten-call-graph makes it so.
    """
    from hloopt.analysis.call_graph import CallGraph
    from hloopt.files import find_inputs, load
    from hloopt.reports.call_graph import (
        call_graph_to_dot,
        call_graph_to_json,
        render_table,
        render_tree,
    )

    threads = tuple(name.strip() for name in execution_threads.split(",") if name.strip())
    graphs = [(path, CallGraph.build(load(path), threads)) for path in find_inputs(files)]
    if output_format == "json":
        print_json([{"file": path, **call_graph_to_json(graph)} for path, graph in graphs])
        return 0
    if view == "dot":
        click.echo("".join(call_graph_to_dot(graph) for _, graph in graphs), nl=False)
        return 0
    console = make_console(color)
    render = render_tree if view == "tree" else render_table
    for path, graph in graphs:
        if len(graphs) > 1:
            console.print(path, style="bold")
        render(graph, console, limit=limit)
    return 0
