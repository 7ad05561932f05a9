"""`hloopt numerics`: where two modules first differ, and by how many ulps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    check_pair,
    color_option,
    format_option,
    make_console,
    print_json,
    scope_depth_option,
    seeds_option,
    top_option,
)
from hloopt.commands.shared.running import (
    preserves_option,
    run_options,
    run_settings,
    seeds_of,
    showing_steps,
    shrink,
    tolerance_options,
)

if TYPE_CHECKING:
    from hloopt.equivalence.numerics import Numerics
    from hloopt.ir.module import Module


@click.command(cls=HloCommand)
@click.argument("before", metavar="A", shell_complete=completion.files)
@click.argument("after", metavar="B", shell_complete=completion.files)
@click.option(
    "--by",
    type=click.Choice(["scope", "op_name", "instruction"]),
    default="scope",
    show_default=True,
    help="what a row of the table is; scope: op_name without its last part",
)
@scope_depth_option(6)
@seeds_option
@tolerance_options
@preserves_option()
@run_options
@top_option("rows of the table", 20, least=0)
@format_option
@color_option
@click.pass_context
def command(ctx: click.Context, /, before: str, after: str, **options: Any) -> int:
    """Find where two modules first differ, and by how many ulps: exit 1 if they do, 2 if that
    cannot be told.

    Both run on the same inputs; the values of instructions that belong together (as `hloopt diff`
    matches them, else by op_name) are compared in the order they run in. Named is the first
    instruction whose error is more than that of its operands explains, with what is other about it.
    Rows follow in the order in which they begin to differ; what is equal bit for bit has none. An
    ulp is one of the largest value of an array. Outputs are judged as `hloopt equivalent` does.

    \b
    hloopt numerics before.hlo after.hlo
    hloopt numerics before.hlo after.hlo --by op_name --input batch.npz
    hloopt numerics step_f32.hlo step_bf16.hlo --preserves precision --depth 4
    """
    from hloopt.files import load
    from hloopt.reports.execution.numerics import numerics_to_json, render_numerics

    check_pair(before, after)
    if options["engine"] != "numpy":
        raise click.UsageError("XLA tells results only: no --engine with numerics")
    modules = load(before), load(after)
    options["seeds"] = seeds_of(ctx, options)
    if options["shrink"]:
        left, right = shrink(modules)
        modules = left, right
    found = _localize(modules, options)
    by, depth = options["by"], options["depth"]
    if options["output_format"] == "json":
        record = numerics_to_json(found, by=by, depth=depth)
        print_json({"before": before, "after": after, **record})
    else:
        console = make_console(options["color"])
        render_numerics(found, modules, console, by=by, depth=depth, top=options["top"])
    mismatch = found.comparison.mismatch
    if mismatch is None:
        return 0
    return EXIT_FOUND if mismatch.is_decided else EXIT_USAGE


def _localize(modules: tuple[Module, Module], options: dict[str, Any]) -> Numerics:
    from hloopt.equivalence.numerics import localize

    with showing_steps("running") as on_steps:
        settings = run_settings(modules, options, on_steps)
        return localize(*modules, settings, options["preserves"])
