"""`hloopt xla passes`: the chain of XLA's passes on a module."""

from __future__ import annotations

import os
from typing import Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import HloCommand, color_option, format_option, say, top_option
from hloopt.commands.shared.each_file import jobs_option
from hloopt.commands.shared.pass_chain import chain_options, show_chain
from hloopt.commands.xla.options import compiled, compiler_options


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@compiler_options
@chain_options
@click.option(
    "--keep",
    metavar="DIR",
    help="leave the dumps here, for `hloopt dumps`",
    shell_complete=completion.folders,
)
@jobs_option
@top_option("rows of the tables of --diff", 20)
@format_option
@color_option
def command(file: str, keep: str | None, jobs: int, **options: Any) -> int:
    """Each of XLA's passes on a program: what it changed, by how much, and its time.

    The program is compiled for a target, without a device, as far as its buffers are assigned.

    \b
    hloopt xla passes step.hlo --target h100_sxm
    hloopt xla passes step.hlo --target cpu --diff algsimp#2
    hloopt xla passes step.hlo --target b200 --track %all-gather.3
    """
    from hloopt.compilers.report import note
    from hloopt.dumps.folder import scan
    from hloopt.dumps.gather import Gatherer
    from hloopt.dumps.logs import read_pass_times

    with compiled(file, options, passes=".*", until_buffers=True) as found:
        compilations = scan([str(found.dumps)]).compilations
        main = max(compilations, key=lambda each: len(each.stages))  # others are its kernels
        exit_code = show_chain(main, Gatherer(jobs, None), options, read_pass_times(str(found.log)))
        say(note(found))
        if keep is not None:
            _keep(found.dumps, keep)
    return exit_code


def _keep(dumps: os.PathLike[str], folder: str) -> None:
    """Move the dumps. Raises HloError where that cannot be done."""
    import shutil

    from hloopt.diagnostics import HloError

    try:
        shutil.copytree(dumps, folder, dirs_exist_ok=True)
    except OSError as error:
        raise HloError(f"cannot write {folder}: {error}", code="HLO004") from None
