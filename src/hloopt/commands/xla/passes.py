"""`hloopt xla passes`: the chain of XLA's passes on a module."""

from __future__ import annotations

import os
from typing import Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import HloCommand, color_option, format_option, say, top_option
from hloopt.commands.shared.each_file import jobs_option
from hloopt.commands.shared.pass_chain import chain_options, show_chain
from hloopt.commands.xla.inputs import program_options
from hloopt.commands.xla.options import compiled


@click.command(cls=HloCommand)
@program_options
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
    from hloopt.compilers.report import notes, times_of
    from hloopt.compilers.stages import compilation_in
    from hloopt.dumps.gather import Gatherer

    if keep is not None:
        _check_empty(keep)
    with compiled(file, options, passes=".*", until_buffers=True) as found:
        gatherer = Gatherer(jobs, None)
        compilation = compilation_in(found.dumps)
        exit_code = show_chain(compilation, gatherer, options, times_of(found) or None)
        for note in notes(found):
            say(note)
        if keep is not None:
            _keep(found.dumps, keep)
    return exit_code


def _check_empty(folder: str) -> None:
    """Raise HloError for a folder with other files: two compiles would be taken for one run."""
    from hloopt.diagnostics import HloError
    from hloopt.files import make_folder

    make_folder(folder)
    if os.listdir(folder):
        raise HloError(f"--keep {folder}: the folder is not empty", code="HLO005")


def _keep(dumps: os.PathLike[str], folder: str) -> None:
    """Copy the dumps. Raises HloError where that cannot be done."""
    import shutil

    from hloopt.diagnostics import HloError

    try:
        shutil.copytree(dumps, folder, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        why = getattr(error, "strerror", None) or "some files cannot be copied"
        raise HloError(f"cannot write {folder}: {why}", code="HLO004") from None
