#!/usr/bin/env python3
"""Make small changes of the code, one at a time, and see whether a test fails on each.

    tools/mutants.py [--seed S] [--count N] [--jobs J] [--survivors] [--tests PATH…] [MODULE…]

A MODULE is a room of tools/mutants_lib/rooms.py, which are all taken unless told, or a path.
Mutants are drawn by seed, from each room in proportion to its lines. On each run the tests that
run its line, until one fails, for 60 s at most: a coverage map says which these are. It is
recorded first, and again where sources or tests have changed. `--survivors` then puts those that
survive to all tests of `make test`; `--tests` takes only the tests below some paths.

Everything runs in copies of the checkout below build/mutants/, where the answers are kept, too: a
run that was stopped goes on where it was. Ends with a table of the rooms and the survivors as
file:line. Exits 1 if less than 85 % are killed, 2 for wrong usage. A mutant on which tests hang
counts as killed.

mutmut and cosmic-ray are for other needs: neither draws a sample by lines, mutmut changes
functions only, and cosmic-ray runs the same command on each mutant.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from mutants_lib.coverage_map import CoverageMap, is_test, record
from mutants_lib.operators import Mutant, mutants_of
from mutants_lib.rooms import ROOMS, files_of
from mutants_lib.sampling import draw
from mutants_lib.state import State
from mutants_lib.trees import Trees
from mutants_lib.trial import KILLED, SURVIVED, TIMED_OUT, Verdict, judge, judge_by_all_tests
from sweep_lib.sweep import show_progress

_ROOT = Path(__file__).resolve().parent.parent
_LEAST_KILLED = 0.85


class Trials:
    """Trials of the mutants of a checkout."""

    def __init__(self, trees: Trees, coverage: CoverageMap, state: State) -> None:
        self._trees = trees
        self._coverage = coverage
        self._state = state
        self._sources: dict[str, bytes] = {}

    def source(self, mutant: Mutant) -> bytes:
        """The text that a mutant changes."""
        if mutant.file not in self._sources:
            self._sources[mutant.file] = (self._trees.root / mutant.file).read_bytes()
        return self._sources[mutant.file]

    def run(self, mutants: Sequence[Mutant], *, all_tests: bool) -> dict[Mutant, Verdict]:
        """The verdicts on `mutants`; those that survive may be put to all tests."""
        verdicts: dict[Mutant, Verdict] = {}
        waiting: list[Mutant] = []
        for mutant in mutants:
            verdict = self._state.get(mutant, self.source(mutant))
            if verdict is None or (
                all_tests and verdict.outcome == SURVIVED and not verdict.all_tests
            ):
                waiting.append(mutant)
            else:
                verdicts[mutant] = verdict
        pool = ThreadPoolExecutor(self._trees.count)
        try:
            running = {pool.submit(self._judge, mutant, all_tests): mutant for mutant in waiting}
            for future in as_completed(running):
                mutant = running[future]
                verdicts[mutant] = future.result()
                self._state.add(mutant, self.source(mutant), verdicts[mutant])
                show_progress(len(verdicts), len(mutants))
        finally:
            pool.shutdown(cancel_futures=True)  # a run that is interrupted ends soon
        return verdicts

    def _judge(self, mutant: Mutant, all_tests: bool) -> Verdict:
        with self._trees.one() as tree:
            verdict = judge(tree, mutant, self._coverage.tests_of(mutant))
            if all_tests and verdict.outcome == SURVIVED:
                verdict = judge_by_all_tests(tree, mutant)
        return verdict


def main() -> int:
    """Try as many mutants as the command line says; the exit code."""
    arguments = _arguments()
    try:
        files = files_of(_ROOT, arguments.modules or list(ROOMS))
        tests = _test_files(arguments.tests)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    trees = Trees(_ROOT, arguments.build, arguments.jobs)
    coverage = record(trees, tests, arguments.build / "coverage", _log)
    sources = {file: (_ROOT / file).read_bytes() for room in files.values() for file in room}
    mutants = {
        room: [mutant for file in names for mutant in mutants_of(file, sources[file])]
        for room, names in files.items()
    }
    lines = {
        room: sum(sources[file].count(b"\n") for file in names) for room, names in files.items()
    }
    drawn = draw(mutants, lines, arguments.seed, arguments.count)
    state = State(arguments.build / "answers.jsonl", coverage.digest)
    trials = Trials(trees, coverage, state)
    verdicts = trials.run(
        [mutant for mutants in drawn.values() for mutant in mutants], all_tests=arguments.survivors
    )
    print(_report(drawn, verdicts, sources))
    survived = sum(verdict.outcome == SURVIVED for verdict in verdicts.values())
    return 1 if survived > (1 - _LEAST_KILLED) * len(verdicts) else 0


def _test_files(paths: Sequence[str]) -> list[str]:
    found: set[Path] = set()
    for path in paths:
        place = _ROOT / path
        if not place.exists():
            raise ValueError(f"there is no {path} to take tests from")
        found.update([place] if place.is_file() else filter(is_test, place.rglob("*")))
    return sorted(file.relative_to(_ROOT).as_posix() for file in found)


def _report(
    drawn: Mapping[str, Sequence[Mutant]],
    verdicts: Mapping[Mutant, Verdict],
    sources: Mapping[str, bytes],
) -> str:
    """The table of the rooms, and the survivors."""
    wide = max(map(len, [*drawn, "room"]))
    lines = [f"{'room':{wide}} {'mutants':>8} {KILLED:>8} {SURVIVED:>9} {TIMED_OUT:>10}"]
    total: Counter[str] = Counter()
    for room, mutants in drawn.items():
        counts = Counter(verdicts[mutant].outcome for mutant in mutants)
        total += counts
        lines.append(_row(f"{room:{wide}}", counts))
    lines.append(_row(f"{'all':{wide}}", total))
    for mutant in sorted(verdicts):
        verdict = verdicts[mutant]
        if verdict.outcome == SURVIVED:
            tests = "all tests" if verdict.all_tests else f"{verdict.tests} tests"
            change = mutant.change(sources[mutant.file])
            lines.append(f"{mutant.file}:{mutant.line}: {change} ({tests})")
    killed = 1 - total[SURVIVED] / max(total.total(), 1)
    lines.append(f"{killed:.1%} of {total.total()} mutants killed, {_LEAST_KILLED:.0%} wanted")
    return "\n".join(lines)


def _row(name: str, counts: Counter[str]) -> str:
    return (
        f"{name} {counts.total():8,} {counts[KILLED]:8,} {counts[SURVIVED]:9,} "
        f"{counts[TIMED_OUT]:10,}"
    )


def _log(text: str) -> None:
    print(text, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help=f"a path, or one of {', '.join(ROOMS)}"
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed, other mutants")
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--jobs", type=int, default=2, help="how many tests at the same time")
    parser.add_argument("--survivors", action="store_true", help="put survivors to all tests")
    parser.add_argument(
        "--tests", nargs="+", default=["tests"], metavar="PATH", help="only tests from here"
    )
    parser.add_argument(
        "--build", type=Path, default=_ROOT / "build/mutants", help="folder of copies and answers"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
