"""`hloopt view`: a module as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import HloCommand, check_pair, status_line
from hloopt.commands.shared.cost_model_options import cost_model_options
from hloopt.commands.shared.pictures import check_overwriting, write_pictures

if TYPE_CHECKING:
    from hloopt.cost_models import CostModelChoice
    from hloopt.ir import Module


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@click.argument("after", metavar="[AFTER]", required=False, shell_complete=completion.files)
@click.option(
    "--output",
    "-o",
    "html",
    metavar="FILE.html",
    help="where to write the page; default, if nothing else is written: FILE with .html behind",
    shell_complete=completion.files,
)
@click.option(
    "--dot",
    metavar="FILE.dot",
    help="write the graph for Graphviz",
    shell_complete=completion.files,
)
@click.option(
    "--model-explorer",
    metavar="FILE.json",
    help="write the graph for Model Explorer, folded by scope",
    shell_complete=completion.files,
)
@click.option(
    "--perfetto",
    metavar="FILE.json",
    help="write the timeline for Perfetto and Chrome: with --target",
    shell_complete=completion.files,
)
@cost_model_options
def command(
    file: str, after: str | None, cost_model: CostModelChoice, **outputs: str | None
) -> int:
    """Write a module as one page: graph, text, timeline, memory, cost and call graph, linked.

    The page loads nothing, and is quick with 60,000 instructions. A click on an instruction selects
    it in all views, the address of the page keeps the selection. With --target it has times: a
    timeline of the schedule and the cost by flops per byte. With AFTER it is the page of that, with
    what changed since FILE.

    \b
    hloopt view step.hlo --target h100_sxm -o step.html
    hloopt view before.hlo after.hlo -o changes.html
    hloopt view step.hlo --model-explorer graph.json
    """
    from hloopt.files import STANDARD_STREAM, load

    shown = file if after is None else after
    if after is not None:
        check_pair(file, after)
    if not any(outputs.values()):
        outputs["html"] = STANDARD_STREAM if shown == STANDARD_STREAM else f"{shown}.html"
    wanted = {name: path for name, path in outputs.items() if path is not None}
    for name, path in wanted.items():
        option = "-o" if name == "html" else f"--{name.replace('_', '-')}"
        check_overwriting(option, path, [file, shown])
    if len(set(wanted.values())) < len(wanted):
        raise click.UsageError("each output needs a file of its own")
    module = load(shown)
    before = None if after is None else load(file)
    texts = {path: _write(name, module, before, cost_model) for name, path in wanted.items()}
    write_pictures(texts)
    return 0


def _write(name: str, module: Module, before: Module | None, cost_model: CostModelChoice) -> str:
    """The text of an output."""
    import json

    if name == "html":
        from hloopt.reports.view.findings import view_of

        with status_line() as update:
            return view_of(module, before, cost_model, begin=lambda part: update("", part))
    if name == "dot":
        from hloopt.reports.graphs.dot import module_to_dot

        return module_to_dot(module)
    if name == "model_explorer":
        from hloopt.reports.graphs.model_explorer import module_to_model_explorer

        return json.dumps(module_to_model_explorer(module), ensure_ascii=False) + "\n"
    from hloopt.reports.schedule.trace import schedule_trace
    from hloopt.reports.view.findings import find_timeline

    return json.dumps(schedule_trace(*find_timeline(module, cost_model)))
