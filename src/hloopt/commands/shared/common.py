"""Parts that commands share: classes, exit codes, options, consoles, lists, JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from rich.console import Console

    from hloopt.diagnostics import HloError
    from hloopt.text.print_options import PrintOptions

EXIT_FOUND = 1
EXIT_USAGE = 2
EXIT_PASS_FAILED = 3
EXIT_DEFECT = 70
"""The exit code of a defect of hloopt: EX_SOFTWARE in sysexits.h."""


COMPLETION_VARIABLE = "_HLOOPT_COMPLETE"
"""The variable of the environment by which the scripts of shells ask for completions."""
CONTENT_CLASSES = (
    "names, metadata, locations, layout, sharding, frontend-attributes, backend-config, "
    "channels, control, constants, order, header"
)
"""The names of `CLASSES` of content: importing those takes long for a page of help."""
ARGUMENTS = "hloopt.arguments"
"""The key in the meta data of a context of the arguments as they were given."""
Function = TypeVar("Function", bound=Callable[..., Any])
Report = TypeVar("Report")


def _show_help(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP = click.Option(
    ["-h", "--help"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_help,
    help="show this message and exit",
)


class HloCommand(click.Command):
    """A command. Click's own help option looks for translations, which takes a millisecond."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does. `--html "$UNSET"` is refused: it must not pass for an option left out."""
        ctx.meta[ARGUMENTS] = list(args)  # of the command that is called in the end
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:  # a line that is being completed
            return rest
        for option in self.params:
            name = option.name or ""
            is_given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
            if isinstance(option, click.Option) and is_given and ctx.params.get(name) == "":
                raise click.BadOptionUsage(name, f"{option.opts[-1]} is given nothing", ctx)
        return rest

    def get_help_option(self, ctx: click.Context) -> click.Option:
        return _HELP


class LazyGroup(HloCommand, click.Group):
    """A group whose commands are imported when they are called."""

    commands_of: ClassVar[Mapping[str, str]]
    """Each command, `command` in a module of `package`, with its line in `--help`."""
    package: ClassVar[str]
    folders: ClassVar[Mapping[str, str]] = {}
    """The folder of `package` that a command is in, where it is in one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.commands_of)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_of:
            return None
        from importlib import import_module

        folder = f"{self.folders[cmd_name]}." if cmd_name in self.folders else ""
        home = f"{self.package}.{folder}{cmd_name.replace('-', '_')}"
        command = import_module(home).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_name = args and not args[0].startswith("-") and not ctx.resilient_parsing
        if is_name and args[0] not in self.commands_of:
            from hloopt.diagnostics import did_you_mean

            hint = did_you_mean(args[0], self.commands_of)
            message = f"no command '{args[0]}'" + (f"; {hint}" if hint else "")
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands with their lines. Click would import all commands for theirs."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=line)
            for name, line in sorted(self.commands_of.items())
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self.commands_of.items()))


def format_option(command: Function) -> Function:
    """`--format text|json`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="for people or for programs",
    )(command)


def color_option(command: Function) -> Function:
    """`--color auto|always|never`."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="auto: on a terminal, unless NO_COLOR is set",
    )(command)


def print_style_option(command: Function) -> Function:
    """`--print STYLE` and `--print-option NAME=VALUE`, as `print_style` and `print_changes`."""
    from hloopt.text.print_options import STYLES, PrintOptions

    for option in (
        click.option(
            "--print-option",
            "print_changes",
            multiple=True,
            metavar="NAME[=true|false]",
            help=f"change the style: {', '.join(PrintOptions._fields)}",
        ),
        click.option(
            "--print",
            "print_style",
            type=click.Choice(list(STYLES)),
            help="the style of the HLO that is written, named as in XLA; keep: the input's text",
        ),
    ):
        command = option(command)
    return command


def note_unreadable(options: PrintOptions) -> None:
    """Say on stderr that nothing reads what is printed so, where that is the case."""
    if reasons := options.unreadable():
        say(f"note: what is written cannot be read again: {', '.join(reasons)}")


def seeds_option(command: Function) -> Function:
    """`--seeds N`."""
    return click.option(
        "--seeds",
        type=click.IntRange(1),
        default=3,
        show_default=True,
        help="the number of inputs on which modules are run and compared",
    )(command)


def top_option(what: str, default: int, *, least: int = 1) -> Callable[[Function], Function]:
    """`--top N`: how many of `what` a page for people shows; JSON has all."""
    return click.option(
        "--top",
        type=click.IntRange(least),
        default=default,
        show_default=True,
        help=f"{what}; JSON has all",
    )


def scope_depth_option(default: int) -> Callable[[Function], Function]:
    """`--depth N`: how many parts of op_name make a scope."""
    return click.option(
        "--depth",
        type=click.IntRange(1),
        default=default,
        show_default=True,
        help="parts of op_name in a scope",
    )


def memory_option(command: Function) -> Function:
    """`--memory/--no-memory`; None without either."""
    return click.option(
        "--memory/--no-memory",
        default=None,
        help="compare memory; default: up to 10,000 instructions",
    )(command)


def exit_code_of(error: HloError) -> int:
    """The exit code of a command that ends in `error`."""
    from hloopt.diagnostics import Defect, PassFailure

    if isinstance(error, Defect):
        return EXIT_DEFECT
    return EXIT_PASS_FAILED if isinstance(error, PassFailure) else EXIT_USAGE


def make_console(color: str, *, stderr: bool = False) -> Console:
    """A console for text meant for people; 80 columns wide where there is no terminal."""
    from hloopt.reports.console.console import PageConsole

    stream = sys.stderr if stderr else sys.stdout
    is_plain = color == "never" or (color == "auto" and bool(os.environ.get("NO_COLOR")))
    color_system: Literal["auto", "standard"] | None = "auto"
    if is_plain or color == "always":
        color_system = None if is_plain else "standard"

    console = PageConsole(
        file=stream,
        color_system=color_system,
        force_terminal=True if color == "always" else None,
        no_color=False if color == "always" else None,
        highlight=False,
        soft_wrap=False,
    )
    if not stream.isatty() and "COLUMNS" not in os.environ:
        console.width = 80
    return console


def say(line: str) -> None:
    """A line on stderr, which may quote the input: what no eye sees in it is escaped."""
    from hloopt.diagnostics import printable

    print(printable(line), file=sys.stderr)


def has_titles(given: Sequence[str]) -> bool:
    """Whether reports begin with the names of their files: where several or a folder are given."""
    from hloopt.files import is_folder

    return len(given) > 1 or any(map(is_folder, given))


def print_titles(
    console: Console, found: Sequence[tuple[str, Report]], given: Sequence[str]
) -> Iterator[Report]:
    """The reports of files one by one; each below the name of its file, if `given` asks for it."""
    for number, (path, report) in enumerate(found):
        if has_titles(given):
            print_title(console, path, is_first=not number)
        yield report


def print_title(console: Console, path: str, *, is_first: bool) -> None:
    """The name of a file as it is, brackets included."""
    if not is_first:
        console.print()
    console.print(path, style="bold", soft_wrap=True)


def print_names(rows: Iterable[tuple[str, str]], color: str) -> None:
    """Names, each with what it stands for."""
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(heads=False, gap=2)
    table.add_column(style="bold")
    table.add_column(wraps=True)
    for row in rows:
        table.add_row(*row)
    make_console(color).print(table)


@contextmanager
def at_work(paths: Sequence[str]) -> Iterator[Iterator[str]]:
    """`paths` one by one; meanwhile, on a terminal, a line on stderr says which is at work."""
    with status_line() as update:
        yield _shown(paths, update)


def _shown(paths: Sequence[str], update: Callable[[str, str], None]) -> Iterator[str]:
    for number, path in enumerate(paths, 1):
        update(f"{number} of {len(paths)}: " if len(paths) > 1 else "", path)
        yield path


@contextmanager
def status_line() -> Iterator[Callable[[str, str], None]]:
    """A line on stderr that says what is at work, if that is a terminal.

    `update(words, name)` changes it; a name that is too long loses its beginning.
    """
    if not sys.stderr.isatty():
        yield lambda _, __: None
        return
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.units import tail

    console = Console(stderr=True)
    width = console.width - _SPINNER_WIDTH
    with console.status("") as status:
        yield lambda words, name: status.update(Text(words + tail(name, width - len(words))))


_SPINNER_WIDTH = 3


def print_json(data: object) -> None:
    """`data` on stdout."""
    import json

    from hloopt.files import STANDARD_STREAM, write_whole

    write_whole(STANDARD_STREAM, json.dumps(data, indent=2) + "\n")


def check_pair(before: str, after: str) -> None:
    """Standard input can be read once. Raises UsageError."""
    from hloopt.files import STANDARD_STREAM

    if before == after == STANDARD_STREAM:
        raise click.UsageError("only one of two modules can come from standard input")


def parse_size(ctx: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """The callback of an option that takes bytes with their unit: `80GiB`, `200MB`, `64B`."""
    amount = parse_count(ctx, option, value)
    if value is not None and value.strip().isdecimal():
        raise click.BadParameter(f"'{value}' has no unit; there are {_UNITS}")
    return amount


_UNITS = "B, KiB, MiB, GiB and TiB (powers of 1024), KB, MB, GB and TB (of 1000)"


def parse_count(ctx: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """The callback of an option that takes an amount: `1500`, `100M`."""
    if value is None:
        return None
    from hloopt.amounts import parse_size

    amount = parse_size(value)
    if amount is None or amount <= 0:
        example = option.default if isinstance(option.default, str) else option.metavar
        raise click.BadParameter(f"'{value}' is no amount: for example {example}")
    return amount


def parse_time(ctx: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """The callback of an option that takes a time: `30s`, `2min`."""
    if value is None:
        return None
    from hloopt.pass_framework.options import parse_seconds

    seconds = parse_seconds(value)
    if not seconds:
        raise click.BadParameter(f"'{value}' is no time: for example 30s")
    return float(seconds)
