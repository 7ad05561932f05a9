"""`hloopt test`: golden tests, HLO files with RUN and CHECK lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

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

    from hloopt.golden.session import Result, Update
    from hloopt.golden.settings import TestSettings


@click.command(cls=HloCommand)
@click.argument("paths", nargs=-1, metavar="[PATH…]", shell_complete=completion.files)
@click.option("-k", "words", metavar="TEXT", help="only tests whose path has this text")
@click.option("-x", "stops", is_flag=True, help="stop at the first test that does not pass")
@click.option(
    *("-j", "--jobs"),
    type=click.IntRange(1),
    metavar="N",
    help="processes; default: one for each processor",
)
@click.option("--lf", "only_failed", is_flag=True, help="only tests that did not pass last time")
@click.option("--update", is_flag=True, help="write the CHECK lines below markers again")
@click.option(
    "--update-all", is_flag=True, help="write all CHECK lines again, those written by hand, too"
)
@click.option(
    "--feature", "features", multiple=True, metavar="NAME", help="REQUIRES and %if may ask for it"
)
@click.option("-D", "parameters", multiple=True, metavar="NAME=VALUE", help="the value of %{NAME}")
@click.option(
    "--shell", is_flag=True, help="bash runs the RUN lines: for xargs, sort, loops; slower"
)
@click.option(
    "--init",
    metavar="FILE",
    help="make a test of a module: add a RUN line with --passes or -p, and CHECK lines",
    shell_complete=completion.files,
)
@click.option(
    "--passes",
    default="",
    metavar="TEXT",
    help="passes of the test that --init makes",
    shell_complete=completion.pass_text,
)
@click.option(
    *("-p", "--pipeline", "pipelines"),
    multiple=True,
    metavar="NAME",
    help="a pipeline of the test that --init makes",
    shell_complete=completion.pipelines,
)
@click.option(
    "--lit-config", is_flag=True, help="write a lit.cfg.py, with which LLVM's lit runs the tests"
)
@click.option(
    "--junit-xml",
    metavar="FILE",
    help="write the results as JUnit's XML, too",
    shell_complete=completion.files,
)
@settings_options
@format_option
@color_option
def command(paths: tuple[str, ...], **options: Any) -> int:
    """Run golden tests; exit 1 if one fails, 2 if one cannot be run or there is none.

    A test is a file with lines `// RUN: hloopt opt %s --passes dce | filecheck %s` and `// CHECK:
    …`; in folders (default: the current one) those of .hlo, .hlotest, .txt and .mlir files,
    folders called `inputs` left out. docs/golden_tests.md says what RUN lines may hold.

    \b
    hloopt test tests/golden
    hloopt test tests/golden -k pipeliner -x
    hloopt test tests/golden --update
    hloopt test --init step.hlo --passes dce,cse
    """
    from hloopt.checks.settings import golden_settings
    from hloopt.golden.last_failed import write_failed

    if options["lit_config"]:
        return _write_lit_config(paths)
    if options["init"] is not None:
        paths = (_begin(options["init"], options),)
    elif options["passes"] or options["pipelines"]:
        raise click.UsageError("--passes and -p are those of --init FILE")
    section = section_of("test", options["config"], isolated=options["isolated"])
    project = golden_settings(section)
    tests = _chosen(paths or project.paths, options)
    jobs = options["jobs"] or project.jobs or os.cpu_count() or 1
    running = _run(tests, jobs, _surroundings(options), _update(options))
    results = list(_until_first(_shown(running, len(tests)), options["stops"]))
    write_failed({os.path.abspath(r.path): r.is_bad for r in results})
    if options["junit_xml"] is not None:
        from hloopt.files import write_whole
        from hloopt.golden.junit import write_junit

        write_whole(options["junit_xml"], write_junit(results))
    if options["output_format"] == "json":
        print_json([result._asdict() for result in results])
    else:
        _render(results, make_console(options["color"]))
    if any(result.outcome == "error" for result in results):
        return EXIT_USAGE
    return EXIT_FOUND if any(result.is_bad for result in results) else 0


def _chosen(paths: tuple[str, ...], options: dict[str, Any]) -> list[str]:
    """The tests that run. Raises UsageError where there are none."""
    from hloopt.golden.collection import find_tests
    from hloopt.golden.last_failed import read_failed

    tests = [str(path) for path in find_tests(paths)]
    if options["words"] is not None:
        tests = [test for test in tests if options["words"] in test]
    if options["only_failed"] and (failed := read_failed()):
        tests = [test for test in tests if os.path.abspath(test) in failed]
    if not tests:
        raise click.UsageError(
            "there is no test: none of the files has a RUN line, or -k fits none"
        )
    return tests


def _surroundings(options: dict[str, Any]) -> TestSettings:
    from hloopt.golden.settings import TestSettings

    parameters = {}
    for text in options["parameters"]:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.UsageError(f"-D {text}: write NAME=VALUE")
        parameters[name] = value
    return TestSettings(frozenset(options["features"]), parameters, options["shell"])


def _update(options: dict[str, Any]) -> Update | None:
    if options["update_all"] or options["init"] is not None:
        wanted: Update = "all"
    elif options["update"]:
        wanted = "marked"
    else:
        return None
    if options["shell"]:
        raise click.UsageError("CHECK lines are written without --shell only")
    return wanted


def _begin(name: str, options: dict[str, Any]) -> str:
    """Make a test of a module, and check its passes first. Returns its path."""
    from pathlib import Path

    from hloopt.driver import Settings
    from hloopt.files import load, write_whole
    from hloopt.golden.beginnings import begin_test

    passes, pipelines = options["passes"], options["pipelines"]
    if not passes and not pipelines:
        raise click.UsageError("--init needs the passes of the test: --passes TEXT or -p NAME")
    Settings(pipelines=pipelines, passes=passes).pipeline()
    load(name)
    write_whole(name, begin_test(Path(name), passes, pipelines))
    return name


def _write_lit_config(paths: tuple[str, ...]) -> int:
    from pathlib import Path

    from hloopt.files import write_whole
    from hloopt.golden.beginnings import LIT_CONFIG

    if len(paths) > 1:
        raise click.UsageError("--lit-config takes one folder")
    path = Path(paths[0] if paths else os.curdir, "lit.cfg.py")
    if path.exists():
        raise click.UsageError(f"{path} is there already")
    write_whole(str(path), LIT_CONFIG)
    click.echo(f"wrote {path}: run the tests with `lit {path.parent}`")
    return 0


def _run(
    tests: Sequence[str], jobs: int, settings: TestSettings, update: Update | None
) -> Iterator[Result]:
    """The results of tests in their order."""
    from functools import partial

    from hloopt.golden.session import lost, run_one
    from hloopt.processes import in_processes

    work = partial(run_one, settings=settings, update=update)
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

    for result in results:
        if result.outcome not in _QUIET:
            style = "bold red" if result.is_bad else "bold cyan"
            line = Text.assemble((result.outcome.upper(), style), f" {result.path}")
            console.print(line, soft_wrap=True)
        if result.account:
            console.print(Text(result.account), soft_wrap=True)
            console.print()
    counts = Counter[str](result.outcome for result in results)
    words = ("passed", "failed", "xpassed", "error", "updated", "xfailed", "unsupported")
    parts = [f"{counts[each]:,} {each}" for each in words if counts[each]]
    is_red = any(result.is_bad for result in results)
    is_green = not is_red and bool(counts["passed"] or counts["updated"])
    console.print(Text(", ".join(parts), "bold red" if is_red else "bold green" * is_green))


_QUIET = ("passed", "xfailed", "unsupported")
"""Outcomes that the counts alone tell."""
