#!/usr/bin/env python3
"""Reduce and bisect the planted failures, and compare with what is written down of each.

    tools/planted_reductions.py [--filter RE] [--jobs N] [--results FILE.jsonl] [--skip-bisect]

For each failure: the instructions of the reduced module beside those of the smallest one, which was
written by hand beforehand; the seconds; whether bisecting names the pass, its run and the
application. Results are appended to FILE, and what is there already is not run again. Exits 1 where
a module has more than 5 instructions too many, the median takes more than a minute, one more than
5, or a culprit is another one.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from failures_lib.case import Culprit as Expected
from failures_lib.case import PlantedFailure
from failures_lib.cases import FAILURES
from hloopt.diagnostics import HloError
from hloopt.reduction.asking import ask
from hloopt.reduction.bisection import Bisection, Culprit, CutShort, Limits, task_of, trace_file
from hloopt.reduction.predicates.passes import (
    PassChangesResult,
    PassFails,
    PassPredicate,
    PassRemarks,
)
from hloopt.reduction.run import ReduceSettings, reduce_file
from hloopt.reduction.trials import TimeLimit, Trials
from hloopt.text import parse_module

_MOST_MORE = 5
_MEDIAN = 60.0
_WORST = 300.0
_HANGS = 3.0
"""Seconds after which an endless pass counts as one; others take a second at most."""


@dataclass(frozen=True)
class Result:
    """The reduction and the bisection of one failure."""

    name: str
    kind: str
    before: int
    after: int
    smallest: int
    trials: int
    reduce_seconds: float
    bisect_seconds: float
    culprit: str
    """Empty where it is the one that is written down, else the one that was found."""
    error: str = ""

    @property
    def is_right(self) -> bool:
        fits = self.after <= self.smallest + _MOST_MORE and self.reduce_seconds <= _WORST
        return fits and not self.culprit and not self.error


def predicate_of(case: PlantedFailure) -> PassPredicate:
    """The predicate that a user would give for a failure of this kind."""
    if case.kind == "wrong result":
        return PassChangesResult(case.passes)
    if case.kind == "missed remark":
        return PassRemarks(case.passes, "missed", case.culprit.pass_name, _pattern(case.signature))
    return PassFails(case.passes)


def _pattern(signature: str) -> str:
    """A regular expression for remarks of a signature."""
    return re.sub(r"\\?%…|'…'|\bN\b|SHAPE", ".*", re.escape(signature).replace("%…", "%…"))


def limit_of(case: PlantedFailure) -> TimeLimit:
    """The time limit of a trial."""
    return TimeLimit(_HANGS, is_shown=True) if case.kind == "endless" else TimeLimit(120)


def measure(case: PlantedFailure, text: str, jobs: int, *, bisects: bool) -> Result:
    """Reduce and bisect one failure."""
    predicate, limit = predicate_of(case), limit_of(case)
    after, trials, error = 0, 0, ""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        settings = ReduceSettings(limit=limit, adapts=case.kind != "endless", jobs=jobs)
        try:
            output = str(Path(folder) / "out.hlo")
            reduced = reduce_file(text, case.name, predicate, output, settings)
            after, trials = reduced.reduction.after.instructions, reduced.trials
        except HloError as failed:
            error = failed.message
    reduced_at = time.perf_counter()
    culprit = ""
    if bisects and not error:
        try:
            found = bisect(case, text, predicate, limit)
            culprit = "" if is_expected(found, case.culprit) else str(found[:-1])
        except HloError as failed:
            error = f"bisect: {failed.message}"
    return Result(
        case.name,
        case.kind,
        case.instructions,
        after,
        parse_module(case.smallest).instruction_count(),
        trials,
        reduced_at - started,
        time.perf_counter() - reduced_at,
        culprit,
        error,
    )


def bisect(case: PlantedFailure, text: str, predicate: PassPredicate, limit: TimeLimit) -> Culprit:
    """The culprit of a failure."""
    with (
        trace_file() as trace,
        Trials(CutShort(case.passes, predicate, trace), limit) as trials,
    ):
        shown = ask(trials, predicate, task_of(Limits(), text), case.name)
        trials.narrow(text, shown)
        return Bisection(trials, text, trace).find(shown)


def is_expected(found: Culprit, expected: Expected) -> bool:
    """Whether bisecting found what is written down."""
    named = (found.pass_name, found.run_of_pass, found.iteration)
    if named != (expected.pass_name, expected.run, expected.iteration):
        return False
    if expected.instruction is None or found.application is None:
        return expected.instruction is None and found.application is None
    place = (found.number, found.application.instruction)
    return place == (expected.limit, expected.instruction)


def earlier(path: Path | None) -> dict[str, Result]:
    """The results in a file, by name."""
    if path is None or not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {found["name"]: Result(**found) for found in map(json.loads, lines)}


def results(arguments: argparse.Namespace) -> Iterator[Result]:
    """The results of the cases, those of before among them."""
    pattern = re.compile(arguments.filter)
    known = earlier(arguments.results)
    for case in FAILURES:
        if not pattern.search(f"{case.kind}: {case.name}"):
            continue
        if case.name in known:
            yield known[case.name]
            continue
        try:
            text = case.text()
        except FileNotFoundError as error:
            print(f"left out: {case.name}: there is no {error.filename}")
            continue
        result = measure(case, text, arguments.jobs, bisects=not arguments.skip_bisect)
        if arguments.results is not None:
            with arguments.results.open("a", encoding="utf-8") as file:
                print(json.dumps(asdict(result)), file=file)
        yield result


def main() -> int:
    """Measure the cases; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--filter", default="", metavar="RE", help="of kinds and names")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--results", type=Path, help="where results go, and are taken from")
    parser.add_argument("--skip-bisect", action="store_true", help="reduce only")
    found = []
    for each in results(parser.parse_args()):
        found.append(each)
        print(
            f"{'ok' if each.is_right else 'no'}  {each.before:6} → {each.after:3} "
            f"(by hand {each.smallest:3})  {each.trials:5} trials {each.reduce_seconds:6.1f} s, "
            f"bisect {each.bisect_seconds:5.1f} s  {each.kind}: {each.name}",
            flush=True,
        )
        for problem in filter(None, (each.culprit, each.error)):
            print(f"    {problem}", flush=True)
    median = statistics.median(each.reduce_seconds for each in found) if found else 0.0
    right = sum(each.is_right for each in found)
    print(f"{right} of {len(found)} as they should be, median {median:.1f} s")
    return 0 if right == len(found) and median <= _MEDIAN else 1


if __name__ == "__main__":
    sys.exit(main())
