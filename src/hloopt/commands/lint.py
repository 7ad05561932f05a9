"""`hloopt lint`: what costs time or memory in modules, or is likely a mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.checking import (
    Looked,
    checking_options,
    completed,
    finish,
    look_at_views,
    max_guessed_option,
)
from hloopt.commands.shared.common import (
    EXIT_USAGE,
    Function,
    HloCommand,
    make_console,
    print_json,
    say,
)
from hloopt.commands.shared.cost_model_options import cost_model_options
from hloopt.commands.shared.origins import before_option
from hloopt.commands.shared.project_settings import section_of, settings_options
from hloopt.commands.shared.watching import appearing, check_watch, input_sizes, watch_option

if TYPE_CHECKING:
    from hloopt.checks.baselines.files import Baseline
    from hloopt.checks.lint.settings import LintSettings
    from hloopt.checks.view import View
    from hloopt.cost_models import CostModelChoice


def _selection(name: str, help: str) -> Callable[[Function], Function]:
    """An option that takes rules, several separated by commas, and may be given several times."""

    def split(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> list[str]:
        return [each.strip() for text in given for each in text.split(",") if each.strip()]

    return click.option(
        name,
        multiple=True,
        metavar="RULES",
        callback=split,
        shell_complete=completion.rules,
        help=help,
    )


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, metavar="FILE…", shell_complete=completion.files)
@click.option("--list", "is_list", is_flag=True, help="list the rules; check nothing")
@_selection("--select", "codes, their beginnings (HLL1), names, or ALL; default: ALL")
@_selection("--extend-select", "rules beside those that are selected")
@_selection("--ignore", "rules that do not run")
@click.option(
    "--option",
    "rule_options",
    multiple=True,
    metavar="RULE.NAME=VALUE",
    help="an option of a rule: exposed-collective.share=5%",
)
@settings_options
@max_guessed_option
@click.option(
    "--write-baseline",
    metavar="FILE.json",
    help="write what is found; fail nothing",
    shell_complete=completion.files,
)
@click.option(
    "--baseline",
    metavar="FILE.json",
    help="findings that are in it pass; its figures are limits of rules HLL6 that have none set",
    shell_complete=completion.files,
)
@click.option("--update-baseline", is_flag=True, help="write what is found now to --baseline")
@click.option("--statistics", is_flag=True, help="count what each rule found")
@before_option
@watch_option
@checking_options("findings of a module", 20)
@cost_model_options
def command(
    files: tuple[str, ...],
    is_list: bool,
    select: list[str],
    extend_select: list[str],
    ignore: list[str],
    rule_options: tuple[str, ...],
    config: str | None,
    isolated: bool,
    max_guessed: float | None,
    statistics: bool,
    write_baseline: str | None,
    baseline: str | None,
    update_baseline: bool,
    cost_model: CostModelChoice,
    **options: Any,
) -> int:
    """Exit 1 if a rule found something, 2 if a rule could not run.

    Each finding says what it costs by the models of memory and time; the most costly come first.
    Rules that are not for the stage of a module (not scheduled, copies not inserted, no target) are
    listed as not run: --allow-no-verdict takes them for passed. `hloopt explain HLL003` describes a
    rule, docs/lint.md the settings of a project. With --before findings name what made collectives.

    \b
    hloopt lint step.hlo --target h100_sxm
    hloopt lint dumps/ --select HLL1,HLL003 --format github
    hloopt lint step.hlo --option exposed-collective.share=5%
    hloopt lint step.hlo --write-baseline base.json
    hloopt lint step.hlo --baseline base.json
    hloopt lint --list
    """
    if is_list:
        _list_rules(options["output_format"], options["color"])
        return 0
    if not files:
        raise click.UsageError("give a FILE to check; - is standard input")
    if statistics and options["output_format"] != "text":
        raise click.UsageError("--statistics is for --format text")
    past = _Past.of(write_baseline, baseline, update_baseline)
    from hloopt.checks.lint.configuration import settings_of, with_options, with_selection

    project = settings_of(section_of("lint", config, isolated=isolated))
    settings = with_selection(project, select=select, extend_select=extend_select, ignore=ignore)
    settings = with_options(settings, rule_options)
    if max_guessed is not None:
        settings = replace(settings, max_guessed=max_guessed)
    cost_model = completed(cost_model, settings)
    if cost_model.is_choice:
        cost_model.resolved()
    check_watch({**options, "write_baseline": past.is_written})
    run = partial(_lint, settings=settings, cost_model=cost_model, past=past, statistics=statistics)
    if not options.pop("watch"):
        return run(files, options=options)
    return max(run(tuple(new), options=options) for new in appearing(lambda: input_sizes(files)))


def _lint(
    files: tuple[str, ...],
    settings: LintSettings,
    cost_model: CostModelChoice,
    past: _Past,
    statistics: bool,
    options: dict[str, Any],
) -> int:
    from hloopt.checks.lint.terminal import render_lint, render_statistics

    look = partial(past.lint, settings=settings)
    rest = {name: value for name, value in options.items() if name not in ("jobs", "before")}
    found, is_whole = look_at_views(
        *(files, cost_model, settings.max_guessed, look, options["jobs"]),
        has_keys=past.path is not None,
        before=options["before"],
    )
    if past.is_written:
        if is_whole:
            past.write({key: looked.figures for key, looked in found})
        return 0 if is_whole else EXIT_USAGE
    checked = [looked.checked for _, looked in found if looked.checked is not None]
    exit_code = finish(checked, render_statistics if statistics else render_lint, **rest)
    return exit_code if is_whole else EXIT_USAGE


@dataclass
class _Past:
    """The baseline of a run: read, written, or both."""

    path: str | None
    is_written: bool
    before: Baseline

    @classmethod
    def of(cls, written: str | None, read: str | None, is_update: bool) -> _Past:
        """Read the baseline that the options name. Raises UsageError and HloError."""
        from hloopt.checks.baselines.files import read_baseline

        if written is not None and read is not None:
            raise click.UsageError("--write-baseline has no --baseline: say --update-baseline")
        if is_update and read is None:
            raise click.UsageError("--update-baseline needs --baseline FILE")
        before = {} if read is None else read_baseline(read)
        _check_figures(before, read)
        return cls(read or written, is_update or written is not None, before)

    def lint(self, key: str, view: View, settings: LintSettings) -> Looked:
        """The checks of a module, without what the baseline has of it; its figures, where they are
        written."""
        from hloopt.checks.lint.baseline import figures_of, with_limits, without_known
        from hloopt.checks.lint.run import lint

        if self.is_written:
            checked = lint(view, settings)
            return Looked(checked, figures_of(view, checked))
        before = self.before.get(key, {})
        limited = with_limits(settings, before, view.cost_model)
        return Looked(without_known(lint(view, limited), before), {})

    def write(self, now: Baseline) -> None:
        """Write what was found now; modules that were not looked at stay. Raises HloError."""
        from hloopt.checks.baselines.files import write_baseline
        from hloopt.diagnostics import counted

        assert self.path is not None  # is_written says that there is one
        write_baseline(self.path, {**self.before, **now})
        say(f"wrote {counted(len(now), 'module')} to {self.path}")


def _check_figures(baseline: Baseline, path: str | None) -> None:
    """Raise HloError for a text that is not a figure, such as one of a rule that there is not."""
    from hloopt.checks.baselines.figures import figure_of
    from hloopt.checks.baselines.files import BaselineError
    from hloopt.diagnostics import HloError

    for text in {text for figures in baseline.values() for text in figures}:
        try:
            figure_of(text)
        except HloError as error:
            help = "write it again with this version of hloopt: --write-baseline FILE"
            message = f"'{text}' is not a figure: {error.message}"
            raise BaselineError(message, help=help).in_file(path or "") from None


def _list_rules(output_format: str, color: str) -> None:
    """Every rule with its subject; as JSON in every format but text."""
    from hloopt.checks.lint.registry import all_rules

    if output_format != "text":
        print_json([rule.summary() for rule in all_rules().values()])
        return
    from itertools import groupby

    from rich.text import Text

    from hloopt.explanations import RULE_FAMILIES
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(heads=False, gap=2)
    table.add_column(style="bold")
    table.add_column()
    table.add_column(wraps=True)
    for digit, members in groupby(all_rules().values(), lambda rule: rule.code[len("HLL")]):
        table.add_line(Text(RULE_FAMILIES[digit], "bold"))
        for rule in members:
            table.add_row(f"  {rule.code}", rule.name, rule.title)
    make_console(color).print(table)
