"""`hloopt sharding what-if`: XLA's partitioner on changed shardings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
)
from hloopt.commands.shared.cost_model_options import cost_model_options

if TYPE_CHECKING:
    from hloopt.cost_models import CostModelChoice
    from hloopt.ir import Module


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="%NAME=SHARDING",
    help="another sharding of a value: '%w={devices=[2,1]<=[2]}', or in axes of the mesh that the "
    "module names '%w=[{dp}, {}]'",
)
@click.option(
    "--drop",
    "dropped",
    multiple=True,
    metavar="SELECTOR",
    help="the sharding that instructions lose: '%name', or as `hloopt grep` selects",
)
@cost_model_options
@format_option
@color_option
def command(
    file: str,
    settings: tuple[str, ...],
    dropped: tuple[str, ...],
    cost_model: CostModelChoice,
    output_format: str,
    color: str,
) -> int:
    """Partition a program again with other shardings: what that changes, in one table.

    FILE is a module before the partitioner, best the dump before all passes. XLA's partitioner (of
    jaxlib, for CPUs) runs on it as it is and as it is changed, behind the propagation of shardings.
    Collectives and bytes are those of its results, memory and times what `hloopt schedule` has of
    them, by --target. A constraint that is dropped gives way to its operand.

    \b
    hloopt sharding what-if before_optimizations.hlo --drop %sharding_constraint.3
    hloopt sharding what-if step.hlo --drop 'opcode=custom-call, source=model.py:33'
    hloopt sharding what-if step.hlo --set '%w={devices=[1,8]<=[8]}' --target h100_sxm
    """
    if not settings and not dropped:
        raise click.UsageError("nothing is changed: give --set or --drop")
    from hloopt.files import load
    from hloopt.reports.sharding.what_if import compare
    from hloopt.sharding.changes import with_changes

    if cost_model.is_choice:
        cost_model.resolved()
    program = load(file)
    changed, changes = with_changes(program, settings, dropped)
    report = compare(_partitioned(program), _partitioned(changed), changes, cost_model)
    if output_format == "json":
        from hloopt.reports.sharding.what_if_record import what_if_to_json

        print_json(what_if_to_json(report))
    else:
        from hloopt.reports.sharding.what_if_terminal import render_what_if

        render_what_if(report, make_console(color))
    return 0


def _partitioned(program: Module) -> Module:
    import tempfile
    from pathlib import Path

    from hloopt.compilers.partitioning import partition

    with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder:
        return partition(program, Path(folder))
