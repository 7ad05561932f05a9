"""Parts that commands which check modules share: options, output, exit codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from hloopt.checks.formats import FORMATS
from hloopt.commands.common import Function, color_option, make_console, top_option

if TYPE_CHECKING:
    from hloopt.checks.results import CheckedModule


def checking_options(what: str) -> Callable[[Function], Function]:
    """`--format`, `-o`, `--top` (of `what`), `--allow-no-verdict`, `--exit-zero`, `--color`."""

    def add(command: Function) -> Function:
        for option in (
            color_option,
            click.option(
                "--exit-zero", is_flag=True, help="exit 0 where a check failed; 2 stays 2"
            ),
            click.option(
                "--allow-no-verdict", is_flag=True, help="checks without a verdict are passed"
            ),
            top_option(what, 5),
            click.option("-o", "--output", metavar="FILE", help="write the results here"),
            click.option(
                "--format",
                "output_format",
                type=click.Choice(FORMATS),
                default="text",
                show_default=True,
                help="for people, for programs, or for a service",
            ),
        ):
            command = option(command)
        return command

    return add


def finish(
    checked: Sequence[CheckedModule],
    *,
    output_format: str,
    output: str | None,
    top: int,
    allow_no_verdict: bool,
    exit_zero: bool,
    color: str,
) -> int:
    """Print or write results in a format; the exit code."""
    from hloopt.checks.results import exit_code
    from hloopt.files import STANDARD_STREAM, write_whole

    if output_format == "text":
        from hloopt.checks.formats.terminal import render_checks, text_of

        if output is None:
            render_checks(checked, make_console(color), top=top)
        else:
            write_whole(output, text_of(checked, top=top))
    else:
        from hloopt.checks.formats import writer_of

        write_whole(output or STANDARD_STREAM, writer_of(output_format)(checked))
    return exit_code(checked, allow_no_verdict=allow_no_verdict, exit_zero=exit_zero)
