"""`--before`: where the collectives of a partitioned module come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import Function

if TYPE_CHECKING:
    from hloopt.ir import Module
    from hloopt.sharding.origins import Origin


_LATER = (
    "--before FILE is for the module that the partitioner made of FILE; for a later stage give the "
    "folder of its dumps: XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_pass_re=spmd-partitioning'"
)


def before_option(command: Function) -> Function:
    """`--before FILE|DIR`; None where it is not given."""
    return click.option(
        "--before",
        metavar="FILE|DIR",
        callback=_no_stream,
        help="the module before the SPMD partitioner, to name the origin of each collective of "
        "what the partitioner made of it; of a later stage a folder of dumps with both",
        shell_complete=completion.files,
    )(command)


def _no_stream(ctx: click.Context, option: click.Parameter, path: str | None) -> str | None:
    from hloopt.files import STANDARD_STREAM

    if path == STANDARD_STREAM:
        raise click.BadParameter("it is read for each module: give a file, not standard input")
    return path


def is_steady(before: str | None) -> bool:
    """Whether a report with `--before` may be kept: which dumps of a folder it reads may change."""
    from hloopt.files import is_folder

    return before is None or not is_folder(before)


def origins_for(module: Module, before: str | None) -> dict[str, Origin] | None:
    """The origins of the collectives of a module by name; None without `--before`.

    Of a folder of dumps those of the module of that name on both sides of the partitioner are
    read. Raises HloError where they are missing or do not belong to the module.
    """
    if before is None:
        return None
    from hloopt.diagnostics import HloError
    from hloopt.files import is_folder, load
    from hloopt.sharding.origins import origins_of

    if not is_folder(before):
        program = load(before)
        try:
            return origins_of(module, program)
        except HloError as error:
            error.help = _LATER
            raise
    from hloopt.dumps.partitioner import partitioner_dumps

    paths = partitioner_dumps(before, module.name)
    return origins_of(module, load(paths.before), load(paths.after))
