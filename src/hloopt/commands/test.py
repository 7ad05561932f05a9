"""`hloopt test`: golden tests, HLO files with RUN and CHECK lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
)
from hloopt.commands.shared.project_settings import section_of, settings_options

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.checks.settings import GoldenSettings
    from hloopt.golden.session import Result


@click.command(cls=HloCommand)
@click.argument("paths", nargs=-1, metavar="[PATH…]", shell_complete=completion.files)
@click.option("-k", "words", metavar="TEXT", help="only tests whose path has this text")
@click.option("-x", "stops", is_flag=True, help="stop at the first test that does not pass")
@click.option(
    *("-j", "--jobs"),
    type=click.IntRange(1),
    metavar="N",
    help="processes; default: that of the settings, else one for each processor",
)
@click.option("--lf", "only_failed", is_flag=True, help="only tests that did not pass last time")
@click.option("--update", is_flag=True, help="write the CHECK lines below markers again")
@click.option(
    "--junit-xml",
    metavar="FILE",
    help="write the results as JUnit's XML, too",
    shell_complete=completion.files,
)
@settings_options
@format_option
@color_option
def command(
    paths: tuple[str, ...],
    words: str | None,
    stops: bool,
    jobs: int | None,
    only_failed: bool,
    update: bool,
    junit_xml: str | None,
    config: str | None,
    isolated: bool,
    output_format: str,
    color: str,
) -> int:
    """Run golden tests; exit 1 if one fails, 2 if one cannot be run or there is none.

    A test is a file with lines `// RUN: hloopt opt %s --passes dce | filecheck %s` and `// CHECK:
    …`; in folders (default: those of the settings, else the current one) those of .hlo, .hlotest,
    .txt and .mlir files, folders called `inputs` left out. docs/golden_tests.md says what RUN lines
    may hold.

    \b
    hloopt test tests/golden
    hloopt test tests/golden -k pipeliner -x
    hloopt test tests/golden --update
    """
    from hloopt.golden.collection import find_tests
    from hloopt.golden.last_failed import read_failed, write_failed

    settings = _settings(config, isolated)
    tests = [str(path) for path in find_tests(paths or settings.paths)]
    if words is not None:
        tests = [test for test in tests if words in test]
    if only_failed and (failed := read_failed()):
        tests = [test for test in tests if os.path.abspath(test) in failed]
    if not tests:
        raise click.UsageError(
            "there is no test: none of the files has a RUN line, or -k fits none"
        )
    count = jobs or settings.jobs or os.cpu_count() or 1
    results = list(_until_first(_shown(_run(tests, count, update), len(tests)), stops))
    write_failed({os.path.abspath(r.path): r.is_bad for r in results})
    if junit_xml is not None:
        from hloopt.files import write_whole
        from hloopt.golden.junit import write_junit

        write_whole(junit_xml, write_junit(results))
    if output_format == "json":
        print_json([result._asdict() for result in results])
    else:
        _render(results, make_console(color))
    outcomes = {result.outcome for result in results}
    return EXIT_USAGE if "error" in outcomes else EXIT_FOUND if "failed" in outcomes else 0


def _settings(config: str | None, isolated: bool) -> GoldenSettings:
    """The settings in a file, by default those of the project. Raises HloError."""
    from hloopt.checks.settings import GoldenSettings, golden_settings

    section = section_of("test", config, isolated=isolated)
    return GoldenSettings() if section is None else golden_settings(section)


def _run(tests: Sequence[str], jobs: int, update: bool) -> Iterator[Result]:
    """The results of tests in their order."""
    from hloopt.golden.session import lost, run_one, update_one
    from hloopt.processes import in_processes

    work = update_one if update else run_one
    if jobs == 1 or len(tests) == 1:
        yield from map(work, tests)
    else:
        yield from in_processes(work, tests, jobs, lost)


def _until_first(results: Iterable[Result], stops: bool) -> Iterator[Result]:
    """The results, up to the first that did not pass if that is wanted."""
    for result in results:
        yield result
        if stops and result.is_bad:
            return


def _shown(results: Iterator[Result], total: int) -> Iterator[Result]:
    """The results, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(results, "hloopt test", total, console=console, transient=True)


def _render(results: Sequence[Result], console: Console) -> None:
    """Print each test that did not pass with its output, then the counts."""
    from collections import Counter

    from rich.text import Text

    styles = {"failed": "bold red", "error": "bold red", "updated": "bold cyan"}
    for result in results:
        if result.outcome != "passed":
            line = Text.assemble(
                (result.outcome.upper(), styles[result.outcome]), f" {result.path}"
            )
            console.print(line, soft_wrap=True)
        if result.account:
            console.print(Text(result.account), soft_wrap=True)
            console.print()
    counts = Counter[str](result.outcome for result in results)
    words = ("passed", "failed", "error", "updated")
    parts = [f"{counts[each]:,} {each}" for each in words if counts[each]]
    style = "bold red" if counts["failed"] or counts["error"] else "bold green"
    console.print(Text(", ".join(parts), style))
