"""The settings of a project, which commands take where their options say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import Function

if TYPE_CHECKING:
    from hloopt.checks.configuration import Section


def settings_options(command: Function) -> Function:
    """`--config FILE.toml` and `--isolated`."""
    for option in (
        click.option("--isolated", is_flag=True, help="look for no settings"),
        click.option(
            "--config",
            metavar="FILE.toml",
            help="settings; default: the nearest hloopt.toml, or pyproject.toml with [tool.hloopt]",
            shell_complete=completion.files,
        ),
    ):
        command = option(command)
    return command


def settings_file(config: str | None, *, isolated: bool) -> str | None:
    """The file that the options name, else the project's; None without. Raises UsageError."""
    from hloopt.checks.configuration import find_configuration

    if config is not None and isolated:
        raise click.UsageError("--config and --isolated exclude each other")
    return config if config is not None or isolated else find_configuration()


def section_of(name: str, config: str | None, *, isolated: bool) -> Section:
    """A section of that file; empty without a file. Raises UsageError and HloError."""
    from hloopt.checks.configuration import NO_SETTINGS, read_section

    path = settings_file(config, isolated=isolated)
    return NO_SETTINGS if path is None else read_section(path, name)
