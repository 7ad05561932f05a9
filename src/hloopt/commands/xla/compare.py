"""`hloopt xla compare`: passes of ours against one of XLA's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
    seeds_option,
    top_option,
)
from hloopt.commands.xla.inputs import program_options
from hloopt.commands.xla.isolate import isolated, number_of, place_option

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.compilers.comparing import Compared


@click.command(cls=HloCommand)
@program_options
@click.option(
    *("-p", "--pipeline", "--passes", "passes"),
    required=True,
    metavar="NAME|TEXT",
    help="ours: passes, a shipped pipeline, or a YAML file",
    shell_complete=completion.passes,
)
@click.option("--xla-pass", "pass_name", required=True, metavar="NAME", help="XLA's pass")
@place_option
@seeds_option
@top_option("rows of each table", 10)
@format_option
@color_option
def command(file: str, pass_name: str, **options: Any) -> int:
    """Run passes of ours and one of XLA's on the same module, and compare what they made of it.

    The module is the one that XLA's pass is given, all passes before it switched off. Results have
    equal text, are equal up to names, equal up to annotations (backend_config and frontend
    attributes), equivalent (they compute the same), or different: exit 1. Exit 2 where that cannot
    be told. Differences are shown as `hloopt diff` does, from XLA's result to ours, with memory and
    schedule.

    \b
    hloopt xla compare step.hlo --target h100_sxm --passes call-inliner --xla-pass call-inliner
    """
    from hloopt.compilers.comparing import Verdict, compare_with
    from hloopt.equivalence import RunSettings
    from hloopt.interpreter.limits import Deadline
    from hloopt.pass_framework.library import pipeline_of

    pipeline = pipeline_of(options["passes"])
    runs = isolated(file, pass_name, options).runs
    number = number_of(runs, options["place"], pass_name)
    run = runs[number - 1]
    limits = RunSettings(seeds=options["seeds"], deadline=Deadline(options["timeout"]))
    found = compare_with(run, pipeline, limits)
    place = f"run {number} of {len(runs):,}, in {run.pipeline}"
    if options["output_format"] == "json":
        print_json(
            {
                "verdict": found.verdict.value,
                "reason": found.reason,
                "pass": pass_name,
                "pipeline": run.pipeline,
                "changed": {"xla": run.is_changed, "ours": found.is_changed},
            }
        )
    else:
        console = make_console(options["color"])
        console.print(f"{options['passes']} and XLA's {pass_name} ({place}): {found.verdict.value}")
        _render(found, console, options["top"], is_changed=run.is_changed)
    if found.verdict is Verdict.UNKNOWN:
        return EXIT_USAGE
    return EXIT_FOUND if found.verdict is Verdict.DIFFERENT else 0


def _render(found: Compared, console: Console, top: int, *, is_changed: bool) -> None:
    from hloopt.compilers.comparing import Verdict
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.console.footnotes import print_footnote
    from hloopt.reports.diff.comparison import NAMES
    from hloopt.reports.module_comparison import compare_modules, render_comparison

    if found.reason:
        print_footnote(console, found.reason)
    if not is_changed and not found.is_changed:
        print_footnote(console, "neither changed the module: the comparison says little")
    if found.verdict not in (Verdict.TEXT, Verdict.NAMES):
        console.print()
        modules = found.theirs, found.ours
        difference = compare_modules(modules, NAMES, None, CostModelChoice(), None)
        render_comparison(difference, console, top=top)
