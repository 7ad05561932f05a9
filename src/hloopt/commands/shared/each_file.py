"""Reports on any number of files: in several processes, in order, whatever becomes of one file."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from hloopt.commands.shared.common import (
    EXIT_USAGE,
    Function,
    exit_code_of,
    has_titles,
    make_console,
    print_title,
)
from hloopt.commands.shared.executors import executor_option, map_on_cluster, on_cluster
from hloopt.commands.shared.parts import merged, shard, shard_option, write_part
from hloopt.commands.shared.report_cache import cache_option, remembering, stop_noting
from hloopt.diagnostics import HloError, lost_process, out_of_memory, render_error
from hloopt.plain_data import to_plain
from hloopt.processes import in_processes

if TYPE_CHECKING:
    from rich.console import Console

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class FileReport:
    """A report on one file. Its functions are called where it was made, at most one of them.

    Without functions nothing is printed: the report is in a file that was asked for.
    """

    to_json: Callable[[], dict[str, Any]] | None
    render: Callable[[Console], None] | None
    exit_code: int = 0


class Outcome(NamedTuple):
    """The fate of one file, as plain data."""

    path: str
    exit_code: int
    output: str | None
    """Text or JSON for stdout; None where there is no report."""
    errors: str
    """Text for stderr."""


def many_files_options(command: Function) -> Function:
    """`-j N`, as `jobs`, and options that `map_files` obeys: --no-cache, --executor, --shard."""
    return jobs_option(cache_option(executor_option(shard_option(command))))


def jobs_option(command: Function) -> Function:
    """`-j N`."""
    return click.option(
        *("-j", "--jobs"),
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="processes for several files",
    )(command)


def report_files(
    given: Sequence[str],
    look: Callable[[str], FileReport],
    *,
    jobs: int,
    output_format: str,
    color: str,
    has_title: bool | None = None,
    has_effects: bool = False,
) -> int:
    """Print a report on each file below `given`, in order; the exit code of the worst.

    Reports on several files are kept for later runs, unless `look` `has_effects`: it writes files.

    Pages have the names of files above them where `given` asks for that, unless told. A file that
    cannot be read is told on stderr, and the rest is done. With several jobs `look` is called in
    other processes. Raises HloError for paths.
    """
    from hloopt.files import find_inputs

    is_json = output_format == "json"
    worst = 0
    paths = find_inputs(given)
    if has_title is None:
        has_title = has_titles(given)
    printer = Printer(is_json=is_json, title_color=color if has_title else None)
    outcomes = map_outcomes(
        look, paths, jobs, is_json=is_json, color=color, has_effects=has_effects
    )
    for outcome in outcomes:
        printer.add(outcome)
        worst = max(worst, outcome.exit_code)
    printer.close()
    return worst


def map_outcomes(
    look: Callable[[str], FileReport],
    paths: Sequence[str],
    jobs: int,
    *,
    is_json: bool,
    color: str,
    has_effects: bool = False,
    key_of: Callable[[str], str] = str,
) -> Iterator[Outcome]:
    """The fate of each file in order: what is wrong with it is part of that."""
    make = partial(_outcome, look=look, is_json=is_json, color=color)
    is_kept = None if has_effects else _is_whole
    return map_files(Outcome, make, paths, jobs, _lost, is_kept, key_of)


def _is_whole(outcome: Outcome) -> bool:
    return not outcome.errors


def map_files(
    kind: type[_Result],
    work: Callable[[str], _Result],
    paths: Sequence[str],
    jobs: int,
    lost: Callable[[str], _Result],
    is_kept: Callable[[_Result], bool] | None,
    key_of: Callable[[str], str] = str,
) -> Iterator[_Result]:
    """Results, of the type `kind`, for files in their order; with several jobs worked on in other
    processes. Of several files the results that `is_kept` names are kept for later runs; `key_of`
    names the files that a task is about, where it is none itself.

    `lost` makes the result of a file whose process was ended from outside. On a terminal a line on
    stderr says which file is waited for. Where parts are merged, results are taken from there;
    where one is asked for, it is written, and the command ends.
    """
    from hloopt.files import STANDARD_STREAM

    if (parts := merged()) is not None:
        return parts.results_of(kind, paths)
    if is_kept is None or len(paths) == 1 or STANDARD_STREAM in paths:
        stop_noting()
    else:
        work = remembering(kind, work, is_kept, key_of)
    if (own := shard()) is not None:
        mine = paths[own.part :: own.parts]
        results = zip(mine, each_in_processes(work, mine, jobs, lost), strict=True)
        write_part(own, paths, {path: to_plain(result) for path, result in results})
    return each_in_processes(work, paths, jobs, lost)


def each_in_processes(
    work: Callable[[str], _Result], paths: Sequence[str], jobs: int, lost: Callable[[str], _Result]
) -> Iterator[_Result]:
    """As `map_files`, for all files whatever part is asked for."""
    from hloopt.files import STANDARD_STREAM

    if STANDARD_STREAM not in paths:  # which other processes do not have
        if (cluster := on_cluster()) is not None:
            return _told(map_on_cluster(cluster, work, paths, lost), paths)
        if jobs > 1 and len(paths) > 1:
            return _told(in_processes(work, paths, jobs, lost), paths)
    return _told(map(work, paths), paths)


def _outcome(path: str, look: Callable[[str], FileReport], *, is_json: bool, color: str) -> Outcome:
    """Look at a file. What is wrong with it is part of the outcome."""
    errors = io.StringIO()
    output: str | None = None
    try:
        with contextlib.redirect_stderr(errors):
            report = look(path)
            output = _json_text(report) if is_json else _page(report, color)
        exit_code = report.exit_code
    except (HloError, MemoryError) as error:
        shown = error if isinstance(error, HloError) else out_of_memory(path)
        print(render_error(shown), file=errors)
        exit_code = exit_code_of(shown)
    return Outcome(path, exit_code, output, errors.getvalue())


def _json_text(report: FileReport) -> str | None:
    return None if report.to_json is None else json.dumps(report.to_json(), indent=2)


def _page(report: FileReport, color: str) -> str | None:
    if report.render is None:
        return None
    console = make_console(color)
    with console.capture() as capture:
        report.render(console)
    return capture.get()


def _lost(path: str) -> Outcome:
    return Outcome(path, EXIT_USAGE, None, render_error(lost_process(path)) + "\n")


class Printer:
    """Prints outcomes as they come: pages below their titles, or the items of a JSON list.

    Each item begins with the path under `key`. `title_color` is that of `--color` if pages have
    titles. With `has_empty_list` JSON is a list also where there is nothing to report.
    """

    def __init__(
        self,
        *,
        is_json: bool,
        title_color: str | None,
        key: str = "file",
        has_empty_list: bool = False,
    ) -> None:
        self._is_json = is_json
        self._title_color = title_color
        self._key = key
        self._count = 0
        self._has_empty_list = has_empty_list

    def add(self, outcome: Outcome) -> None:
        """Print what there is of a file."""
        if outcome.errors:
            sys.stdout.flush()
            sys.stderr.write(outcome.errors)
        if outcome.output is None:
            return
        if self._is_json:
            first = json.dumps({self._key: outcome.path}, indent=2).removesuffix("\n}")
            item = f"{first},{outcome.output.removeprefix('{')}".replace("\n", "\n  ")
            sys.stdout.write(("[\n  " if not self._count else ",\n  ") + item)
        else:
            if self._title_color is not None:
                console = make_console(self._title_color)
                print_title(console, outcome.path, is_first=not self._count)
            sys.stdout.write(outcome.output)
        self._count += 1

    def close(self) -> None:
        """Print what ends a list, of which no file may have an item."""
        if self._is_json and self._count:
            sys.stdout.write("\n]\n")
        elif self._is_json and self._has_empty_list:
            sys.stdout.write("[]\n")


def _told(results: Iterator[_Result], paths: Sequence[str]) -> Iterator[_Result]:
    """The same; meanwhile, on a terminal, a line on stderr says which file is waited for."""
    if not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.units import tail

    console = Console(file=sys.stderr)  # this one, whatever becomes of it while files are read
    with console.status("") as status:
        for number, path in enumerate(paths, 1):
            count = f"{number:,} of {len(paths):,}: " if len(paths) > 1 else ""
            status.update(Text(count + tail(path, console.width - _SPINNER_WIDTH - len(count))))
            result = next(results)
            status.stop()  # else it would be between the lines of a page on the same terminal
            yield result
            status.start()


_SPINNER_WIDTH = 3
