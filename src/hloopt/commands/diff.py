"""`hloopt diff`: compare two modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    CONTENT_CLASSES,
    EXIT_FOUND,
    HloCommand,
    check_pair,
    color_option,
    format_option,
    make_console,
    memory_option,
    print_json,
    say,
    top_option,
)
from hloopt.commands.shared.cost_model_options import cost_model_options, preset_option
from hloopt.commands.shared.each_file import FileReport, Printer, many_files_options, map_outcomes
from hloopt.commands.shared.pictures import check_outputs, write_pictures

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.cost_models import CostModelChoice
    from hloopt.dumps.pairs import Pair
    from hloopt.ir import Module
    from hloopt.reports.module_comparison import ModuleComparison
    from hloopt.reports.schedule.run import Preset


@click.command(cls=HloCommand)
@click.argument("before", metavar="A", shell_complete=completion.files)
@click.argument("after", metavar="B", shell_complete=completion.files)
@click.option("--text", is_flag=True, help="show the texts of changed instructions")
@click.option("--side-by-side", is_flag=True, help="show them side by side, from 120 columns on")
@top_option("rows of each table", 20)
@click.option(
    "--with",
    "with_classes",
    multiple=True,
    metavar="CLASS",
    help="count a class of content that is left out by default: names",
    shell_complete=completion.content_classes,
)
@click.option(
    "--ignore",
    "ignored_classes",
    multiple=True,
    metavar="CLASS,…",
    help=f"leave classes of content out: {CONTENT_CLASSES}",
    shell_complete=completion.content_classes,
)
@click.option("--exit-zero", is_flag=True, help="exit 0 also where they differ")
@click.option(
    "--html",
    metavar="FILE",
    help="also write the page of `hloopt view` with what changed; -: nothing else",
    shell_complete=completion.files,
)
@memory_option
@cost_model_options
@preset_option
@many_files_options
@format_option
@color_option
def command(before: str, after: str, cost_model: CostModelChoice, **options: Any) -> int:
    """Compare two HLO modules, or two folders of them; exit 1 if they differ.

    Instructions are matched by what they compute and by their neighbourhood, names decide between
    equals. Names are no difference: `--with names` counts them. Where modules differ,
    their memory is compared, too: each size, and what entered or left the peak. So are schedules
    with asynchronous operations, or all where times are asked for: how long they take, and how long
    they wait. Both are run by one model of times, on the streams of one preset. Of modules that
    break a rule (`hloopt verify`) only the texts are compared.

    Of folders, dumps of the same module and stage are compared, other files by their paths.

    \b
    hloopt diff before.hlo after.hlo --target h100_sxm --preset xla-gpu
    hloopt diff dump-of-monday/ dump-of-today/ -j 8
    """
    from hloopt.analysis.content import as_classes
    from hloopt.files import is_folder
    from hloopt.reports.diff.comparison import NAMES

    check_pair(before, after)
    cost_model.resolved()
    job = _Job(
        as_classes(options["ignored_classes"]) | (NAMES - as_classes(options["with_classes"])),
        options["memory"],
        cost_model,
        options["preset"],
        *(options[name] for name in _Job._fields[4:]),
    )
    html = options["html"]
    both = [is_folder(path) for path in (before, after)]
    if any(both) and not all(both):
        folder, file = (before, after) if both[0] else (after, before)
        raise click.UsageError(f"{folder} is a folder, {file} is a file: give two of one kind")
    if html is not None and any(both):
        raise click.UsageError("--html is for two files, not folders")
    if html is not None:
        check_outputs({"--html": html}, [before, after])
    if all(both):
        exit_code = _compare_folders(before, after, job, options["jobs"])
    else:
        exit_code = _compare_files(before, after, job, html)
    return 0 if options["exit_zero"] and exit_code == EXIT_FOUND else exit_code


def _compare_files(before: str, after: str, job: _Job, html: str | None) -> int:
    from hloopt.files import is_stdout, read_module

    modules = read_module(before), read_module(after)
    found = job.compare(modules)
    if html is None or not is_stdout(html):
        job.show(found)
    if html is not None:
        write_pictures({html: job.page(modules[1], found)})
    return 0 if found.diff.is_identical else EXIT_FOUND


class _Job(NamedTuple):
    """How modules are compared, and how that is shown."""

    ignored: frozenset[str]
    memory: bool | None
    cost_model: CostModelChoice
    preset: Preset | None
    output_format: str
    color: str
    top: int
    text: bool
    side_by_side: bool

    def compare(self, modules: tuple[Module, Module]) -> ModuleComparison:
        """Compare two modules. Raises HloError."""
        from hloopt.reports.module_comparison import compare_modules

        return compare_modules(modules, self.ignored, self.memory, self.cost_model, self.preset)

    def page(self, after: Module, found: ModuleComparison) -> str:
        """The page of the module after. Raises HloError for one that is invalid."""
        from hloopt.reports.view.findings import view_of
        from hloopt.verifier.well_formed import why_invalid

        if (error := why_invalid(after)) is not None:
            raise error
        return view_of(after, found.diff, self.cost_model, self.preset)

    def show(self, found: ModuleComparison) -> None:
        """Print a comparison."""
        if self.output_format == "json":
            print_json(_to_json(found))
        else:
            self.render(found, make_console(self.color))

    def render(self, found: ModuleComparison, console: Console) -> None:
        """Print a comparison for people."""
        from hloopt.reports.module_comparison import render_comparison

        render_comparison(
            found, console, side_by_side=self.side_by_side, top=self.top, text=self.text
        )


def show_difference(before: str, after: str, output_format: str, color: str, *, top: int) -> int:
    """As the command, without options; the exit code."""
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.diff.comparison import NAMES

    job = _Job(
        *(NAMES, None, CostModelChoice(), None, output_format, color, top),
        text=False,
        side_by_side=False,
    )
    return _compare_files(before, after, job, None)


# -- folders --------------------------------------------------------------------------------------


def _compare_folders(before: str, after: str, job: _Job, jobs: int) -> int:
    """Report on the pairs that differ, and on files without a partner."""
    from hloopt.diagnostics import counted
    from hloopt.dumps.pairs import pairs_of
    from hloopt.files import read_module

    pairs = {pair.label: pair for pair in pairs_of(before, after)}
    same: list[str] = []

    def look(label: str) -> FileReport:
        pair = pairs[label]
        if pair.before is None or pair.after is None:
            return _one_sided(pair)
        if _have_equal_bytes(pair.before, pair.after):
            return FileReport(None, None)
        found = job.compare((read_module(pair.before), read_module(pair.after)))
        if found.diff.is_identical:
            return FileReport(None, None)
        return FileReport(
            lambda: {"before_file": pair.before, "after_file": pair.after, **_to_json(found)},
            lambda console: job.render(found, console),
            EXIT_FOUND,
        )

    is_json = job.output_format == "json"
    worst = 0
    printer = Printer(is_json=is_json, key="pair", title_color=job.color, has_empty_list=True)
    outcomes = map_outcomes(
        *(look, list(pairs), jobs),
        is_json=is_json,
        color=job.color,
        key_of=lambda label: "\0".join(map(str, pairs[label])),
    )
    for outcome in outcomes:
        printer.add(outcome)
        worst = max(worst, outcome.exit_code)
        if not outcome.exit_code:
            same.append(outcome.path)
    printer.close()
    alone = sum(None in (pair.before, pair.after) for pair in pairs.values())
    say(
        f"{counted(len(pairs), 'pair')}, {len(same):,} the same"
        + (f"; {counted(alone, 'file')} without a partner" if alone else "")
    )
    return worst


def _one_sided(pair: Pair) -> FileReport:
    from hloopt.diagnostics import printable

    place = f"only in the first folder: {pair.before}"
    if pair.before is None:
        place = f"only in the second folder: {pair.after}"
    return FileReport(
        lambda: {"before_file": pair.before, "after_file": pair.after},
        lambda console: console.print(printable(place), markup=False, soft_wrap=True),
        EXIT_FOUND,
    )


def _have_equal_bytes(before: str, after: str) -> bool:
    """Whether two files are the same; what cannot be read is told by who reads it as HLO."""
    from filecmp import cmp

    try:
        return cmp(before, after, shallow=False)
    except OSError:
        return False


def _to_json(found: ModuleComparison) -> dict[str, object]:
    from hloopt.reports.diff.record import diff_to_json
    from hloopt.reports.memory.comparison_record import memory_change_to_json
    from hloopt.reports.schedule.comparison_record import schedule_change_to_json

    reports, schedule = found.memory, found.schedule
    reasons = (found.why_no_memory, found.why_no_schedule)
    return {
        **diff_to_json(found.diff),
        "memory": reports and memory_change_to_json(*reports, found.diff.partners),
        "schedule": None if schedule is None else schedule_change_to_json(schedule),
        "not_compared": [why for why in reasons if why is not None],
    }
