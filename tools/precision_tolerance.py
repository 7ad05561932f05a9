#!/usr/bin/env python3
"""Measure the tolerance that `--validate` gives passes which change precision.

    tools/precision_tolerance.py --shared DIR [--seed 0] [--count 20] [--modules 100] [--verbose]
                                 [--passes TEXT]

Modules of the corpus of at most `--most` instructions with floats of less than 32 bits, `--modules`
of them, are changed in right ways: roundings come earlier, later or not at all. None may be called
different. The tolerance is compared with the largest error seen, both in units in the last place of
the narrowest type on the way to the output. Then one operation of each of `--count` modules is made
four such units too large, which has to be found.

Exits 1 if a right change is called different, the median tolerance is more than 8 times the error,
or less than 18 of 20 planted errors are found.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from hloopt.diagnostics import HloError
from hloopt.equivalence import Comparison, Reference, RunSettings
from hloopt.equivalence.path_types import PathTypes
from hloopt.files import read_module
from hloopt.interpreter.limits import Deadline
from hloopt.ir.module import Module
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.runner import PipelineRunner
from precision_lib.changes import CHANGES, Change
from precision_lib.plants import plant

MOST_TIMES = 8
LEAST_FOUND = 0.9
_STEPS = 2_000_000
_MEMORY = 1 << 30
_SECONDS = 20.0
_NARROW = re.compile(r"\b(?:bf16|f16|f8e\w+)\[")


class Answer(NamedTuple):
    """The verdict on one changed module."""

    verdict: str
    reason: str
    ratio: float | None = None
    """The tolerance over the largest error, of the output where that is the least."""


def narrow_modules(shared: Path, most: int, dice: random.Random) -> Iterator[Path]:
    """The files of the corpus with narrow floats and few instructions, in random order."""
    files = sorted((shared / "corpus" / "modules").glob("*/*.hlo"))
    dice.shuffle(files)
    for file in files:
        if not _NARROW.search(file.read_text(encoding="utf-8", errors="replace")):
            continue
        try:
            module = read_module(str(file))
            if module.instruction_count() <= most and PathTypes(module).has_narrow:
                yield file
        except HloError:
            continue


def compare(before: Module, after: Module) -> Answer:
    """The verdict of validation with passes that preserve precision only."""
    deadline = Deadline(_SECONDS)
    settings = RunSettings(steps=_STEPS, memory=_MEMORY, deadline=deadline)
    try:
        found = Reference(before, settings).examine(after, "precision")
    except HloError as error:
        return Answer("not runnable", error.message)
    if found.mismatch is None:
        return Answer("equal", "", _ratio(found))
    verdict = "different" if found.mismatch.is_decided else "not decided"
    return Answer(verdict, found.mismatch.reason, _ratio(found))


def _ratio(found: Comparison) -> float | None:
    return min(
        (
            output.tolerance_in_units / output.error_in_units
            for output in found.outputs
            if output.error_in_units and output.tolerance_in_units
        ),
        default=None,
    )


def right_changes(file: Path, changes: Mapping[str, Change]) -> Iterator[tuple[str, Answer]]:
    """The verdicts on right changes of a module, by name."""
    for name, change in changes.items():
        module = read_module(str(file))
        try:
            is_changed = change(module)
        except HloError:  # it breaks a rule, or the passes refuse it
            continue
        if is_changed:
            yield name, compare(read_module(str(file)), module)


def passes_as_change(text: str) -> Change:
    """A change that passes of ours make."""

    def change(module: Module) -> bool:
        return PipelineRunner().run(parse_passes(text, find_pipeline), module).changed

    return change


def planted(file: Path, dice: random.Random) -> Answer | None:
    """The verdict on a module with a planted error; None where there is no place for one."""
    module = read_module(str(file))
    place = plant(module, dice)
    if place is None:
        return None
    found = compare(read_module(str(file)), module)
    return found._replace(reason=f"%{place.name}: {found.reason}")


def measure_changes(
    files: Sequence[Path], changes: Mapping[str, Change], *, verbose: bool
) -> tuple[Counter[str], list[float]]:
    """The verdicts on right changes, and the tolerances over the errors; prints wrong verdicts."""
    verdicts: Counter[str] = Counter()
    ratios: list[float] = []
    for file in files:
        for name, answer in right_changes(file, changes):
            verdicts[answer.verdict] += 1
            if answer.ratio is not None and answer.verdict == "equal":
                ratios.append(answer.ratio)
            if verbose or answer.verdict == "different":
                times = "" if answer.ratio is None else f" {answer.ratio:.1f} times"
                print(f"{answer.verdict}:{times} {file} {name} {answer.reason}")
    return verdicts, ratios


def measure_plants(
    files: Sequence[Path], count: int, dice: random.Random, *, verbose: bool
) -> Counter[str]:
    """The verdicts on `count` planted errors; prints those that are not found."""
    verdicts: Counter[str] = Counter()
    for file in files:
        if verdicts.total() == count:
            break
        answer = planted(file, dice)
        if answer is None or answer.verdict == "not runnable":
            continue
        verdicts[answer.verdict] += 1
        if verbose or answer.verdict != "different":
            print(f"planted, {answer.verdict}: {file} {answer.reason}")
    return verdicts


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20, help="planted errors")
    parser.add_argument("--modules", type=int, default=100, help="modules for right changes")
    parser.add_argument("--most", type=int, default=200, help="instructions of a module")
    parser.add_argument("--passes", help="passes of ours that make the changes, as opt takes them")
    parser.add_argument("--verbose", action="store_true", help="a line for every module")
    options = parser.parse_args(arguments)
    dice = random.Random(options.seed)
    files = list(narrow_modules(options.shared, options.most, dice))
    changes = {options.passes: passes_as_change(options.passes)} if options.passes else CHANGES
    right, ratios = measure_changes(files[: options.modules], changes, verbose=options.verbose)
    wrong = measure_plants(files, options.count, dice, verbose=options.verbose)
    times = median(ratios) if ratios else 0.0
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in right.most_common())
    print(
        f"right changes: {verdicts}; tolerance {times:.1f} times the error (median of "
        f"{len(ratios)})"
    )
    print(f"planted errors: {wrong['different']} of {wrong.total()} found")
    few = wrong["different"] < LEAST_FOUND * wrong.total()
    return 1 if right["different"] or times > MOST_TIMES or few else 0


if __name__ == "__main__":
    sys.exit(main())
