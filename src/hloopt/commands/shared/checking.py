"""Parts that commands which check modules share: options, output, exit codes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hloopt.checks.formats import FORMATS
from hloopt.checks.results import CheckedModule
from hloopt.commands.shared import completion
from hloopt.commands.shared.common import Function, color_option, make_console, top_option
from hloopt.commands.shared.each_file import each_in_processes, many_files_options, map_files
from hloopt.commands.shared.executors import on_cluster
from hloopt.commands.shared.origins import is_steady, origins_for
from hloopt.commands.shared.parts import merged, shard

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.checks.expectations.files import ExpectationFile
    from hloopt.checks.lint.settings import LintSettings
    from hloopt.checks.settings import ExpectSettings
    from hloopt.checks.view import View
    from hloopt.cost_models import CostModelChoice


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
    """The options that say what is written where, what counts, and `-j`; `--top` is of `what`."""

    def add(command: Function) -> Function:
        for option in (
            many_files_options,
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


class Looked(NamedTuple):
    """The checks of a module; or figures alone, where a baseline is written."""

    checked: CheckedModule | None
    figures: dict[str, Any]


class _Viewed(NamedTuple):
    """The fate of one file."""

    key: str
    looked: Looked | None
    error: str | None


def look_at_views(
    files: Sequence[str],
    cost_model: CostModelChoice,
    most_guessed: float,
    look: Callable[[str, View], Looked],
    jobs: int,
    *,
    has_keys: bool,
    before: str | None = None,
) -> tuple[list[tuple[str, Looked]], bool]:
    """Results of `look` for the modules of files, as checks see them; whether all could be read.

    Each has its key in baselines: its name, with `has_keys` numbered where one comes again. `look`
    is given it, and works in another process where there are several jobs. A file that cannot be
    read is told on stderr. Of `before`, the module before the partitioner, are origins.
    """
    from hloopt.files import find_inputs

    paths = find_inputs(files)
    key_of: Callable[[str, str], str] = _name_alone
    if has_keys and merged() is None:  # parts have them
        is_alone = jobs == 1 and shard() is None and on_cluster() is None
        key_of = _counting() if is_alone else _counted_before(paths, jobs)
    work = partial(_look, key_of, cost_model, most_guessed, look, before)
    found: list[tuple[str, Looked]] = []
    is_kept = _is_whole if not has_keys and is_steady(before) else None
    for each in map_files(_Viewed, work, paths, jobs, _lost, is_kept):
        if each.looked is None:
            print(each.error, file=sys.stderr)
        else:
            found.append((each.key, each.looked))
    return found, len(found) == len(paths)


def _is_whole(viewed: _Viewed) -> bool:
    return viewed.looked is not None


def _look(
    key_of: Callable[[str, str], str],
    cost_model: CostModelChoice,
    most_guessed: float,
    look: Callable[[str, View], Looked],
    before: str | None,
    path: str,
) -> _Viewed:
    from hloopt.checks.subject import Subject
    from hloopt.checks.view import View
    from hloopt.diagnostics import HloError, render_error
    from hloopt.files import load

    try:
        module = load(path)
        key = key_of(path, module.name)
        origins = origins_for(module, before) or {}
        view = View.of(Subject(path, module, cost_model, origins), most_guessed)
        return _Viewed(key, look(key, view), None)
    except HloError as error:
        return _Viewed("", None, render_error(error))


def _lost(path: str) -> _Viewed:
    from hloopt.diagnostics import lost_process, render_error

    return _Viewed("", None, render_error(lost_process(path)))


def _name_alone(path: str, name: str) -> str:
    return name


def _counting() -> Callable[[str, str], str]:
    """The keys of modules that are asked for in the order of the files."""
    names: Counter[str] = Counter()

    def key_of(path: str, name: str) -> str:
        names[name] += 1
        return _key(name, names[name])

    return key_of


def _counted_before(paths: Sequence[str], jobs: int) -> Callable[[str, str], str]:
    """The keys of modules that are asked for in any order, by other processes."""
    names: Counter[str] = Counter()
    keys: dict[str, str] = {}
    for path, name in zip(paths, each_in_processes(_name_of, paths, jobs, _no_name), strict=True):
        if name:
            names[name] += 1
            keys[path] = _key(name, names[name])
    return lambda path, name: keys.get(path, name)


def _name_of(path: str) -> str:
    """The name of the module in a file; empty where it cannot be read, and so does not count."""
    from hloopt.diagnostics import HloError
    from hloopt.files import load

    try:
        return load(path).name
    except HloError:
        return ""


def _no_name(path: str) -> str:
    return ""


def _key(name: str, number: int) -> str:
    return name if number == 1 else f"{name}#{number}"


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
