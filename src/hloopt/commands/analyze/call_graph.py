"""`hloopt analyze call-graph`: which computations there are, and what calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    at_work,
    color_option,
    format_option,
    has_titles,
    make_console,
    print_json,
    print_titles,
    top_option,
)

if TYPE_CHECKING:
    from hloopt.ir.module import Module


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option("--tree", "view", flag_value="tree", help="draw the calls below the entry")
@click.option("--dot", "view", flag_value="dot", help="write Graphviz text: pipe it into `dot`")
@top_option("rows of the table, lines of the tree", 40)
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
    top: int,
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
    from hloopt.diagnostics import printable
    from hloopt.files import find_inputs, load
    from hloopt.reports.structure.call_graph import report_call_graph
    from hloopt.reports.structure.call_graph_dot import call_graph_to_dot
    from hloopt.reports.structure.call_graph_terminal import render_call_table, render_call_tree
    from hloopt.reports.structure.record import call_graph_to_json

    if view and output_format == "json":
        raise click.UsageError(f"--{view} is another form: not with --format json")
    with at_work(find_inputs(files)) as paths:
        modules = [(path, load(path)) for path in paths]
    threads = _threads(execution_threads, [module for _, module in modules])
    graphs = [(path, CallGraph.build(module, threads)) for path, module in modules]
    if view == "dot":
        for path, graph in graphs:
            if has_titles(files):
                click.echo(f"// {printable(path)}")
            click.echo(call_graph_to_dot(graph), nl=False)
        return 0
    reports = [(path, report_call_graph(graph)) for path, graph in graphs]
    if output_format == "json":
        print_json([{"file": path, **call_graph_to_json(report)} for path, report in reports])
        return 0
    console = make_console(color)
    render = render_call_tree if view == "tree" else render_call_table
    for report in print_titles(console, reports, files):
        render(report, console, top=top)
    return 0


def _threads(given: str, modules: Sequence[Module]) -> tuple[str, ...]:
    """The names in `NAME,…`. Raises BadParameter for one that no computation runs on."""
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    known = {c.execution_thread for module in modules for c in module.computations.values()}
    for name in names:
        if name not in known:
            from hloopt.diagnostics import did_you_mean

            hint = did_you_mean(name, sorted(known))
            raise click.BadParameter(
                f"nothing runs on a thread '{name}'" + (f"; {hint}" if hint else ""),
                param_hint="--execution-threads",
            )
    return names
