"""`hloopt expect`: whether modules are as expected."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
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
from hloopt.commands.shared.common import EXIT_USAGE, HloCommand, say
from hloopt.commands.shared.cost_model_options import cost_model_options
from hloopt.commands.shared.project_settings import section_of, settings_options

if TYPE_CHECKING:
    from hloopt.checks.baselines.comparison import Tolerances
    from hloopt.checks.baselines.files import Baseline
    from hloopt.checks.expectations.files import Entry, ExpectationFile
    from hloopt.checks.results import Check
    from hloopt.checks.settings import ExpectSettings
    from hloopt.checks.view import View
    from hloopt.cost_models import CostModelChoice

_LOOKS_COMPARED = re.compile(r"\s*[A-Za-z_]\w*\s*(\(.*\))?\s*\.\s*\w+\s*([=<>!~]|in\b)", re.DOTALL)


@click.command(cls=HloCommand)
@click.argument(
    "arguments",
    nargs=-1,
    required=True,
    metavar="FILE… [EXPECTATION…]",
    shell_complete=completion.files,
)
@click.option(
    "--expectations",
    "files_of_expectations",
    multiple=True,
    metavar="FILE.yaml",
    help="expectations in YAML; may be given several times",
    shell_complete=completion.files,
)
@settings_options
@max_guessed_option
@click.option(
    "--write-baseline",
    metavar="FILE.json",
    help="write the figures of the modules; check nothing",
    shell_complete=completion.files,
)
@click.option(
    "--baseline",
    metavar="FILE.json",
    help="figures of before: none may be worse than there",
    shell_complete=completion.files,
)
@click.option("--update-baseline", is_flag=True, help="write the figures of now to --baseline")
@click.option(
    "--tolerance",
    metavar="NAME=SHARE,…",
    help="how much worse than the baseline figures may be: peak=2%,schedule.exposed=5%",
)
@checking_options("instructions of a failed expectation", 5)
@cost_model_options
def command(
    arguments: tuple[str, ...],
    files_of_expectations: tuple[str, ...],
    config: str | None,
    isolated: bool,
    max_guessed: float | None,
    cost_model: CostModelChoice,
    write_baseline: str | None,
    baseline: str | None,
    update_baseline: bool,
    tolerance: str | None,
    **options: Any,
) -> int:
    """Exit 1 if a module is not as expected, 2 if there is no verdict.

    An expectation compares a figure: of a table, whose rows a selector picks, or of a group.
    docs/expectations.md lists them. Where the stage of a module allows no verdict (not partitioned,
    copies not inserted, guessed times), the reason and what to do are printed.

    \b
    hloopt expect step.hlo 'collectives(kind=all-gather, dtype=float).count == 0'
    hloopt expect step.hlo 'memory.peak <= 70GiB' 'memory.temporaries == 0'
    hloopt expect step.hlo 'schedule(target=h100_sxm).exposed <= 5%'
    hloopt expect dumps/ --expectations expect.yaml --format junit > report.xml
    hloopt expect step.hlo --write-baseline base.json
    hloopt expect step.hlo --baseline base.json --tolerance peak=2%
    """
    if write_baseline is not None and baseline is not None:
        raise click.UsageError("--write-baseline has no --baseline: say --update-baseline")
    if baseline is None and (update_baseline or tolerance is not None):
        raise click.UsageError("--update-baseline and --tolerance need --baseline FILE")
    paths, texts = _split(arguments)
    jobs = options.pop("jobs")
    from hloopt.checks.settings import expect_settings

    settings = expect_settings(section_of("expect", config, isolated=isolated))
    entries, cost_model, guessed = _wanted(
        texts, files_of_expectations, cost_model, max_guessed, settings
    )
    if not entries and write_baseline is None and baseline is None:
        raise click.UsageError("nothing is expected: give an expectation, or --expectations FILE")
    past = None if baseline is None else _Past.of(baseline, tolerance, is_kept=not update_baseline)
    if write_baseline is not None:
        figures, is_whole = look_at_views(paths, cost_model, guessed, _figures, jobs, has_keys=True)
        now = {key: looked.figures for key, looked in figures}
        return _write(now, write_baseline) if is_whole else EXIT_USAGE
    look = partial(_check, entries=entries, past=past)
    found, is_whole = look_at_views(
        paths, cost_model, guessed, look, jobs, has_keys=past is not None
    )
    if past is not None and update_baseline and is_whole:
        past.update({key: looked.figures for key, looked in found})
    if past is not None and update_baseline and not entries:
        return 0 if is_whole else EXIT_USAGE
    from hloopt.checks.formats.terminal import render_checks

    checked = [looked.checked for _, looked in found if looked.checked is not None]
    exit_code = finish(checked, render_checks, **options)
    return exit_code if is_whole else EXIT_USAGE


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files, and expectations: what is no file and compares something, or begins as one does."""
    from hloopt.checks.expectations.names import GROUPS, TABLES

    paths, texts = [], []
    for argument in arguments:
        first = re.match(r"\s*(\w+)\s*[.(]", argument)
        begins = first is not None and (first[1] in TABLES or first[1] in GROUPS)
        if not _is_file(argument) and (begins or _LOOKS_COMPARED.match(argument)):
            texts.append(argument)
        else:
            paths.append(argument)
    if not paths:
        raise click.UsageError("give a FILE to check; - is standard input")
    return paths, texts


def _is_file(argument: str) -> bool:
    from hloopt.files import is_remote

    return is_remote(argument) or os.path.exists(argument)


def _wanted(
    texts: Sequence[str],
    paths: Sequence[str],
    cost_model: CostModelChoice,
    max_guessed: float | None,
    settings: ExpectSettings,
) -> tuple[list[Entry], CostModelChoice, float]:
    """The expectations, and the settings of options, or else of files, or else of the project."""
    from hloopt.checks.expectations.files import Entry, parse_expectations
    from hloopt.checks.expectations.grammar import parse_expectation
    from hloopt.checks.view import MOST_GUESSED
    from hloopt.files import read_source

    entries = [Entry(parse_expectation(text)) for text in texts]
    for path in paths:
        found: ExpectationFile = parse_expectations(read_source(path))
        entries += found.entries
        cost_model = completed(cost_model, found)
        max_guessed = found.max_guessed if max_guessed is None else max_guessed
    cost_model = completed(cost_model, settings)
    max_guessed = settings.max_guessed if max_guessed is None else max_guessed
    if cost_model.is_choice:
        cost_model.resolved()
    return entries, cost_model, MOST_GUESSED if max_guessed is None else max_guessed


@dataclass
class _Past:
    """A baseline."""

    path: str
    baseline: Baseline
    tolerances: Tolerances
    is_kept: bool
    """Whether figures are compared with it; else those of now take their place."""

    @classmethod
    def of(cls, path: str, tolerance: str | None, *, is_kept: bool) -> _Past:
        from hloopt.checks.baselines.comparison import parse_tolerances
        from hloopt.checks.baselines.files import read_baseline

        tolerances = parse_tolerances(tolerance) if tolerance else {}
        return cls(path, read_baseline(path), tolerances, is_kept)

    def checks(self, key: str, view: View) -> tuple[list[Check], dict[str, Any]]:
        """The checks against the baseline; where it is written anew, the figures of now instead."""
        from hloopt.checks.baselines.comparison import compare, missing
        from hloopt.checks.baselines.figures import known, values_of

        before = self.baseline.get(key)
        if before is None and self.is_kept:
            return [missing(key)], {}
        values = values_of(view, before or ())
        if self.is_kept:
            return compare(before or {}, values, self.tolerances, view.subject.file), {}
        return [], known(values)

    def update(self, now: Baseline) -> None:
        """Write the baseline with the figures of now. Raises HloError."""
        from hloopt.checks.baselines.files import write_baseline

        write_baseline(self.path, {**self.baseline, **now})
        _say_written(now, self.path)


def _check(key: str, view: View, entries: Sequence[Entry], past: _Past | None) -> Looked:
    """The checks of a module, and its figures where they are written to a baseline."""
    from hloopt.checks.expectations.evaluation import check
    from hloopt.checks.results import CheckedModule

    module = view.subject.module
    checks = [
        replace(check(entry.expectation, view), why=entry.why)
        for entry in entries
        if entry.is_for(module)
    ]
    against, figures = ([], {}) if past is None else past.checks(key, view)
    checked = CheckedModule(view.subject.file, module.name, (*checks, *against))
    return Looked(checked, figures)


def _figures(key: str, view: View) -> Looked:
    from hloopt.checks.baselines.figures import known, values_of

    return Looked(None, known(values_of(view)))


def _write(baseline: Baseline, path: str) -> int:
    from hloopt.checks.baselines.files import write_baseline

    write_baseline(path, baseline)
    _say_written(baseline, path)
    return 0


def _say_written(figures: Baseline, path: str) -> None:
    from hloopt.diagnostics import counted

    count = counted(sum(map(len, figures.values())), "figure")
    say(f"wrote {count} of {counted(len(figures), 'module')} to {path}")
