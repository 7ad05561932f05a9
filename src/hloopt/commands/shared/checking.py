"""Parts that commands which check modules share: options, output, exit codes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hloopt.checks.formats import FORMATS
from hloopt.commands.shared import completion
from hloopt.commands.shared.common import Function, at_work, color_option, make_console, top_option

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.checks.expectations.files import ExpectationFile
    from hloopt.checks.lint.settings import LintSettings
    from hloopt.checks.results import CheckedModule
    from hloopt.checks.settings import ExpectSettings
    from hloopt.checks.view import View
    from hloopt.cost_models import CostModelChoice
    from hloopt.diagnostics import HloError


def max_guessed_option(command: Function) -> Function:
    """`--max-guessed`; None where it is not given."""
    return click.option(
        "--max-guessed",
        callback=_parse_share,
        metavar="5%",
        help="the share of the time that may be guessed where times are compared; default: 5%",
    )(command)


def _parse_share(ctx: click.Context, option: click.Parameter, text: str | None) -> float | None:
    from hloopt.amounts import parse_share

    if text is None:
        return None
    try:
        return parse_share(text)
    except ValueError:
        raise click.BadParameter(f"'{text}' is no share: for example 5%") from None


def checking_options(what: str, top: int) -> Callable[[Function], Function]:
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
            top_option(what, top),
            click.option(
                "-o",
                "--output",
                metavar="FILE",
                help="write the results here",
                shell_complete=completion.files,
            ),
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


def completed(
    cost_model: CostModelChoice, settings: LintSettings | ExpectSettings | ExpectationFile
) -> CostModelChoice:
    """The model of time of the command line, or where that is silent of the settings."""
    if cost_model.target is None:
        cost_model = replace(cost_model, target=settings.target)
    if cost_model.name is None:
        cost_model = replace(cost_model, name=settings.cost_model)
    return cost_model


def views_of(
    files: Sequence[str],
    cost_model: CostModelChoice,
    most_guessed: float,
    unreadable: list[HloError] | None = None,
) -> Iterator[tuple[str, View]]:
    """The modules of files, one in memory at a time, as checks see them.

    Each has its key in baselines: its name, numbered where one comes again. A file that cannot be
    read is an error, or, with `unreadable`, a message beside the others, and goes in there.
    """
    from hloopt.checks.subject import Subject
    from hloopt.checks.view import View
    from hloopt.diagnostics import HloError, render_error
    from hloopt.files import find_inputs, load

    names: Counter[str] = Counter()
    with at_work(find_inputs(files)) as each:
        for path in each:
            try:
                module = load(path)
            except HloError as error:
                if unreadable is None:
                    raise
                print(render_error(error), file=sys.stderr)
                unreadable.append(error)
                continue
            names[module.name] += 1
            number = names[module.name]
            key = module.name if number == 1 else f"{module.name}#{number}"
            yield key, View.of(Subject(path, module, cost_model), most_guessed)


def finish(
    checked: Sequence[CheckedModule],
    render: Callable[[Sequence[CheckedModule], Console, int], None],
    *,
    output_format: str,
    output: str | None,
    top: int,
    allow_no_verdict: bool,
    exit_zero: bool,
    color: str,
) -> int:
    """Print or write results in a format; the exit code. `render` makes the page for people."""
    from hloopt.checks.results import exit_code
    from hloopt.files import STANDARD_STREAM, write_whole

    if output_format == "text":
        if output is None:
            render(checked, make_console(color), top)
        else:
            from hloopt.checks.formats.terminal import text_of

            write_whole(output, text_of(lambda console: render(checked, console, top)))
    else:
        from hloopt.checks.formats import writer_of

        write_whole(output or STANDARD_STREAM, writer_of(output_format)(checked))
    return exit_code(checked, allow_no_verdict=allow_no_verdict, exit_zero=exit_zero)
