"""`hloopt tune`: which of XLA's flags make a step shorter."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    parse_time,
    print_json,
)
from hloopt.commands.shared.each_file import jobs_option
from hloopt.commands.shared.running import showing_parts
from hloopt.commands.xla.options import chosen, compiler_options, repeatable

if TYPE_CHECKING:
    from hloopt.tuning.journal import Journal
    from hloopt.tuning.judgement import Choice, Judge, Judged


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@compiler_options()
@click.option(
    *("--preset", "--flags", "preset"),
    metavar="NAME|FILE.yaml",
    default="overlap",
    show_default=True,
    help="the flags that are tried: of the package, or a file `xla_NAME: [VALUE, …]`",
    shell_complete=completion.files,
)
@click.option(
    "--budget",
    metavar="TIME",
    callback=parse_time,
    help="stop after so long with the best so far: 10min",
)
@click.option(
    "--journal",
    metavar="FILE.jsonl",
    help="keep each result here, and go on from those that are there",
    shell_complete=completion.files,
)
@jobs_option
@format_option
@color_option
def command(file: str, **options: Any) -> int:
    """Compile under many combinations of XLA's flags, and find the shortest step.

    Each compile, without a device, is judged by the time of a step, as `hloopt schedule` has it,
    and by its peak memory. Flags interact, so the search begins with none of them and with
    all, and goes on in rounds: single changes of the best combination, then those that helped,
    together. Printed are the combinations that none beats in both time and memory.

    \b
    hloopt tune step.hlo --target h100_sxm -j 4
    hloopt tune step.hlo --target b200 --budget 10min --journal step.jsonl
    """
    from hloopt.compilers.plugins import version_of
    from hloopt.targets import load_target
    from hloopt.tuning.journal import Journal
    from hloopt.tuning.judgement import Judge
    from hloopt.tuning.report import Tuned, render_tuned, tuned_to_json
    from hloopt.tuning.search import Search
    from hloopt.tuning.space import read_space

    space = read_space(options["preset"])
    if load_target(options["target"]).gpu is None:
        raise click.UsageError(f"--target {options['target']}: there are no times of its steps")
    program, compiler = chosen(file, options)
    flags = tuple(options["flags"])
    judge = Judge(program, compiler, options["target"], flags, options["timeout"])
    version = version_of(compiler.plugin)
    journal = None
    if options["journal"] is not None:
        journal = Journal(options["journal"], judge, version)
    with showing_parts() as progress:
        work = _Work(judge, journal, options["jobs"], options["budget"], progress)
        search = Search(space, work)
        is_whole = True
        try:
            search.run()
        except _BudgetOver:
            is_whole = False
    judged = list(search.judged.values()) or work.done
    default = next((each for each in judged if not each.flags), None)
    if default is None or default.seconds is None:
        with repeatable(file, options):
            raise _no_default(default)
    tuned = Tuned(judged, search.unknown, is_whole, compiler.target, version)
    if options["output_format"] == "json":
        print_json(tuned_to_json(tuned))
    else:
        render_tuned(tuned, make_console(options["color"]))
    return 0


def _no_default(default: Judged | None) -> Exception:
    from hloopt.compilers.failures import CompilerFailure
    from hloopt.diagnostics import HloError

    if default is None:
        return HloError("the budget ran out before the first compile ended")
    return CompilerFailure(default.error)


class _BudgetOver(Exception):
    """Time is up."""


class _Work:
    """Judges choices, in several processes, until the budget is used."""

    def __init__(
        self,
        judge: Judge,
        journal: Journal | None,
        jobs: int,
        budget: float | None,
        progress: Any,
    ) -> None:
        self._judge = judge
        self._journal = journal
        self._jobs = jobs
        self._end = None if budget is None else time.monotonic() + budget
        self._progress = progress
        self.done: list[Judged] = []

    def __call__(self, choices: Sequence[Choice]) -> Iterator[Judged]:
        from hloopt.processes import in_processes

        known = {} if self._journal is None else self._journal.known
        new = [choice for choice in choices if choice not in known]
        yield from self._noted(known[choice] for choice in choices if choice in known)
        if not new:
            return
        if self._jobs == 1:
            results: Iterator[Judged] = map(self._judge, new)
        else:
            results = in_processes(self._judge, new, self._jobs, _lost)
        while True:
            if self._end is not None and time.monotonic() > self._end:
                raise _BudgetOver
            judged = next(results, None)
            if judged is None:
                return
            if self._journal is not None:
                self._journal.add(judged)
            yield from self._noted([judged])

    def _noted(self, results: Iterable[Judged]) -> Iterator[Judged]:
        from hloopt.diagnostics import counted

        for judged in results:
            self.done.append(judged)
            if self._progress is not None:
                self._progress(counted(len(self.done), "compile"), 0.0)
            yield judged


def _lost(choice: Choice) -> Judged:
    from hloopt.tuning.judgement import Judged

    return Judged(choice, error="the process that compiled it was ended from outside")
