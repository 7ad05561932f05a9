"""The trial of a mutant: whether a test fails on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from mutants_lib.coverage_map import SELECTION, RecordedTest
from mutants_lib.operators import Mutant
from mutants_lib.trees import Tree

KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"

_SECONDS = 60.0
_RECORDED_SECONDS = 20.0
"""The most that recorded tests may take, so that a timeout means that the mutant hangs."""
_SECONDS_OF_ALL_TESTS = 3600.0
_FIRST_FILES = 2
_NO_FAILURE, _NO_TESTS = 0, 5  # exit codes of pytest


class Verdict(NamedTuple):
    """The outcome of a trial."""

    outcome: str
    tests: int
    """The number of tests that were chosen."""
    killer: str = ""
    """The test that failed, where pytest came so far."""
    all_tests: bool = False
    """Whether this is about all tests of `make test`."""

    @property
    def final(self) -> bool:
        """Whether no other test might kill the mutant."""
        return self.all_tests or self.outcome != SURVIVED


def judge(tree: Tree, mutant: Mutant, tests: Sequence[RecordedTest]) -> Verdict:
    """Run the tests on a mutant, those that are most about its file first, until one fails."""
    batches = batches_of(mutant, tests)
    count = sum(map(len, batches))
    deadline = time.monotonic() + _SECONDS
    with tree.changed(mutant.file, mutant.applied((tree.folder / mutant.file).read_bytes())):
        for batch in batches:
            names = tree.folder / "tests.txt"
            names.write_text("".join(f"{test.name}\n" for test in batch), encoding="utf-8")
            outcome, killer = _run(tree, [f"@{names.name}"], deadline - time.monotonic())
            if outcome != SURVIVED:
                return Verdict(outcome, count, killer)
    return Verdict(SURVIVED, count)


def judge_by_all_tests(tree: Tree, mutant: Mutant) -> Verdict:
    """Run all tests that `make test` runs on a mutant, until one fails."""
    with tree.changed(mutant.file, mutant.applied((tree.folder / mutant.file).read_bytes())):
        outcome, killer = _run(tree, [*SELECTION, "tests"], _SECONDS_OF_ALL_TESTS)
    return Verdict(outcome, 0, killer, all_tests=True)


def _run(tree: Tree, chosen: list[str], seconds: float) -> tuple[str, str]:
    options = ["-x", "-q", "--tb=no", "--no-header", "-rfE"]
    code, output = tree.pytest([*options, *chosen], max(seconds, 1.0))
    if code is None:
        return TIMED_OUT, ""
    if code == _NO_TESTS:
        raise RuntimeError(f"pytest finds no tests: {' '.join(chosen)}\n{output}")
    if code == _NO_FAILURE:
        return SURVIVED, ""
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return KILLED, failed[0].split(" ", 1)[1].partition(" - ")[0] if failed else ""


def batches_of(mutant: Mutant, tests: Sequence[RecordedTest]) -> list[list[RecordedTest]]:
    """The tests to run together: those of two files that are most about the mutant's, then others.

    Together they take 20 recorded seconds at most, except for one test, which always runs.
    """
    files: dict[str, list[RecordedTest]] = {}
    for test in sorted(tests, key=lambda test: (test.seconds, test.name)):
        files.setdefault(test.file, []).append(test)
    order = sorted(files, key=lambda file: (-_share(mutant, files[file]), file))
    left = _RECORDED_SECONDS
    batches: list[list[RecordedTest]] = []
    for chosen in (order[:_FIRST_FILES], order[_FIRST_FILES:]):
        batch: list[RecordedTest] = []
        for test in (test for file in chosen for test in files[file]):
            if test.seconds <= left or not (batch or batches):
                batch.append(test)
                left -= test.seconds
        if batch:
            batches.append(batch)
    return batches


def _share(mutant: Mutant, tests: Sequence[RecordedTest]) -> float:
    """The share of the mutant's file in the lines that tests of one file run."""
    here = sum(test.lines[mutant.file].bit_count() for test in tests)
    everywhere = sum(bits.bit_count() for test in tests for bits in test.lines.values())
    return here / everywhere
