"""`hloopt view`: a module as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import HloCommand, check_pair, status_line
from hloopt.commands.shared.cost_model_options import cost_model_options, preset_option
from hloopt.commands.shared.origins import before_option, origins_for
from hloopt.commands.shared.pictures import check_outputs, write_pictures

if TYPE_CHECKING:
    from hloopt.cost_models import CostModelChoice
    from hloopt.ir import Module
    from hloopt.reports.schedule.run import Preset
    from hloopt.sharding.origins import Origins


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@click.argument("after", metavar="[AFTER]", required=False, shell_complete=completion.files)
@click.option(
    "--output",
    "-o",
    "html",
    metavar="FILE.html",
    help="where to write the page; default, if nothing else is written: FILE.html, or "
    "AFTER.changes.html",
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
@before_option
@cost_model_options
@preset_option
def command(
    file: str,
    after: str | None,
    before: str | None,
    cost_model: CostModelChoice,
    preset: Preset | None,
    **outputs: str | None,
) -> int:
    """Write a module as one page: graph, text, timeline, memory, cost and call graph, linked.

    The page loads nothing, and is quick with 60,000 instructions. A click on an instruction selects
    it in all views, the address of the page keeps the selection. With --target it has times: a
    timeline of the schedule and the cost by flops per byte. With AFTER it is the page of that, with
    what changed since FILE; with --before a collective has the instruction that made it.

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
        suffix = ".html" if after is None else ".changes.html"
        outputs["html"] = STANDARD_STREAM if shown == STANDARD_STREAM else shown + suffix
    wanted = {name: path for name, path in outputs.items() if path is not None}
    check_outputs({_option(name): path for name, path in wanted.items()}, [file, shown])
    module = load(shown)
    origins = origins_for(module, before)
    job = _Job(module, None if after is None else load(file), cost_model, preset, origins)
    write_pictures({path: job.write(name) for name, path in wanted.items()})
    return 0


def _option(name: str) -> str:
    return "-o" if name == "html" else f"--{name.replace('_', '-')}"


class _Job(NamedTuple):
    """The module to show, and how."""

    module: Module
    before: Module | None
    cost_model: CostModelChoice
    preset: Preset | None
    origins: Origins | None

    def write(self, name: str) -> str:
        """The text of an output."""
        import json

        if name == "html":
            return self._page()
        if name == "dot":
            from hloopt.reports.graphs.dot import module_to_dot

            return module_to_dot(self.module)
        if name == "model_explorer":
            from hloopt.reports.graphs.model_explorer import module_to_model_explorer

            return json.dumps(module_to_model_explorer(self.module), ensure_ascii=False) + "\n"
        from hloopt.reports.schedule.trace import schedule_trace
        from hloopt.reports.view.findings import find_timeline

        return json.dumps(schedule_trace(*find_timeline(self.module, self.cost_model, self.preset)))

    def _page(self) -> str:
        from hloopt.reports.diff.comparison import diff_modules
        from hloopt.reports.view.findings import view_of

        with status_line() as update:
            diff = None
            if self.before is not None:
                update("", "comparison")
                diff = diff_modules(self.before, self.module)
            return view_of(
                self.module,
                diff,
                self.cost_model,
                self.preset,
                origins=self.origins,
                begin=lambda part: update("", part),
            )
