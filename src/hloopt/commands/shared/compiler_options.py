"""Options about XLA's compilers that several commands declare: flags, and the plug-in."""

from __future__ import annotations

from collections.abc import Callable

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import Function


def flag_option(about: str) -> Callable[[Function], Function]:
    """`--flag xla_NAME=VALUE`, several times, as `flags`; `about` is its help."""
    return click.option("--flag", "flags", multiple=True, metavar="xla_NAME=VALUE", help=about)


def plugin_option(about: str) -> Callable[[Function], Function]:
    """`--plugin NAME|PATH`; `about` is its help."""
    return click.option(
        "--plugin",
        envvar="HLOOPT_XLA_PLUGIN",
        show_envvar=True,
        metavar="NAME|PATH",
        help=about,
        shell_complete=completion.files,
    )


def target_option(about: str, *, required: bool = False) -> Callable[[Function], Function]:
    """`--target cpu|NAME|FILE`, for `Compiler.named`; `about` is its help."""
    return click.option(
        "--target",
        required=required,
        metavar="cpu|NAME|FILE",
        help=about,
        shell_complete=completion.targets,
    )
