"""`hloopt equivalent`: whether two modules compute the same."""

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
    say,
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
    from hloopt.equivalence import Comparison
    from hloopt.ir.module import Module


@click.command(cls=HloCommand)
@click.argument("before", metavar="A", shell_complete=completion.files)
@click.argument("after", metavar="B", shell_complete=completion.files)
@click.option(
    "--global",
    "is_global",
    is_flag=True,
    help="A is the program for all devices, B what the SPMD partitioner made of it",
)
@seeds_option
@tolerance_options
@preserves_option()
@run_options
@top_option("outputs that are not equal bit for bit", 10, least=0)
@format_option
@color_option
@click.pass_context
def command(ctx: click.Context, /, before: str, after: str, **options: Any) -> int:
    """Run two modules on the same inputs: exit 1 if they differ, 2 if that cannot be told.

    Parameters and results are compared first. Integers have to be equal, and all values where a
    module only moves data; other floats up to rounding, see docs/running.md. A module that is not
    partitioned yet is compared with a partitioned one on the parts that shardings make of its
    arrays. Further inputs have NaN, infinities, zeros, extremes of integers and indices out of
    range among them. With --input they run once. Custom calls that nobody knows, and constants
    printed as {...}, are made up, the same in both modules.

    \b
    hloopt equivalent before.hlo after.hlo
    hloopt equivalent before_optimizations.txt after_optimizations.txt --input weights.npz
    hloopt equivalent --global before_spmd.hlo after_spmd.hlo
    hloopt equivalent step.hlo optimized.hlo --devices 1x8 --rtol 1e-3
    """
    from hloopt.files import load

    check_pair(before, after)
    left, right = load(before), load(after)
    options["seeds"] = seeds_of(ctx, options)
    comparison = _compare(left, right, options)
    if options["output_format"] == "json":
        from hloopt.reports.execution.equivalence import comparison_to_json

        print_json({"before": before, "after": after, **comparison_to_json(comparison)})
    else:
        from hloopt.reports.execution.equivalence import render_comparison

        render_comparison(comparison, make_console(options["color"]), top=options["top"])
    if comparison.mismatch is None:
        return 0
    return EXIT_FOUND if comparison.mismatch.is_decided else EXIT_USAGE


def _shrunk_together(program: Module, partitioned: Module) -> tuple[Module, Module]:
    """A smaller program, and what XLA's partitioner makes of it.

    Raises HloError where the partitioner of jaxlib makes other collectives of the whole program
    than there are in `partitioned`: its results tell nothing of that, then.
    """
    import tempfile
    from pathlib import Path

    from hloopt.compilers.partitioning import partition_alone
    from hloopt.diagnostics import HloError
    from hloopt.sharding.tags import has_same_collectives

    (small,) = shrink([program])
    with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder:
        if not has_same_collectives(partition_alone(program, Path(folder, "whole")), partitioned):
            raise HloError(
                f"--shrink: XLA's partitioner makes other collectives of {program.name} here",
                help="the partitioner of jaxlib has to be the one that made B; without --shrink B "
                "runs as it is",
            )
        made = partition_alone(small, Path(folder, "small"))
    say("shrunk: XLA's partitioner made B again, of the smaller A")
    return small, made


def _compare(left: Module, right: Module, options: dict[str, Any]) -> Comparison:
    """Signatures first: nothing is made smaller, or runs, where they differ already."""
    from hloopt.equivalence import Comparison, Mismatch, Reference
    from hloopt.equivalence.reference import pair

    with showing_steps("running") as on_steps:
        settings = run_settings([left, right], options, on_steps)
        settings = settings._replace(is_global=options["is_global"])
        if options["shrink"]:
            pairing = pair(left, right, settings)
            if isinstance(pairing, str):
                return Comparison(Mismatch(pairing))
            if options["is_global"]:
                left, right = _shrunk_together(left, right)
            elif pairing.is_cut:
                raise click.UsageError(
                    "--shrink: one module computes for all devices, the other one is partitioned; "
                    "their sizes do not shrink together; with --global the partitioner runs again"
                )
            else:
                left, right = shrink([left, right])
        return Reference(left, settings).examine(right, options["preserves"])
