#!/usr/bin/env python3
"""Plant miscompiles, and rewrites that are right, and see what `--validate` says of them.

    tools/planted_miscompiles.py [--verbose]

Each case is a module and what a pass makes of it, which runs in a pipeline under
`--validate each` on the usual inputs. A miscompile is found, or something in the report says that
it was not compared, or validation refuses to decide, or it is missed; a right rewrite is equal, not
decided, or called different.
Exits 1 if more than 3 miscompiles are not found, one is missed, or a right rewrite is called
different.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hloopt.diagnostics import HloError, PassFailure
from hloopt.equivalence import RunSettings
from hloopt.ir.module import Module
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.pass_framework.pipeline import PassStep, Pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.pass_framework.validation import Validator
from hloopt.text import parse_module
from planted_lib.cases import Case
from planted_lib.miscompiles import MISCOMPILES
from planted_lib.rewrites import REWRITES

_MOST_UNFOUND = 3


class Verdict(NamedTuple):
    """The verdict of validation on a case."""

    name: str
    kind: str
    reason: str


class _Planted(ModulePass):
    """Makes of a module what a case says."""

    name = "planted"

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._rewritten = parse_module(case.rewritten)
        self.preserves = case.preserves

    def run(self, module: Module, context: PassContext) -> bool:
        module.become(self._rewritten)
        return True


def judge(case: Case) -> Verdict:
    """The verdict of `--validate each` on a case."""
    steps = (PassStep(_Planted(case)),) if case.edits else parse_passes(case.passes, _none).steps
    validator = Validator(RunSettings(), each=True)
    runner = PipelineRunner(validator=validator)
    try:
        result = runner.run(Pipeline("planted", steps), parse_module(case.text))
    except PassFailure as error:
        kind = "different" if error.code == "HLO702" else "broken"
        return Verdict(case.name, kind, error.message)
    except HloError as error:
        return Verdict(case.name, "not decided", error.message)
    if not result.changed:
        return Verdict(case.name, "unchanged", "")
    found = validator.found
    if found.on_specials:
        return Verdict(case.name, "on special values alone", found.on_specials[0])
    if found.notes:
        return Verdict(case.name, "not compared", "; ".join(found.notes))
    return Verdict(case.name, "equal", "")


def _none(name: str) -> Pipeline:
    raise HloError(f"no pipeline {name} here")


def run(cases: Sequence[Case], *, verbose: bool, expected: Sequence[str]) -> Counter[str]:
    """Judge cases; print those of another kind than expected, or all."""
    verdicts = [judge(case) for case in cases]
    for verdict in verdicts:
        if verbose or verdict.kind not in expected:
            print(f"{verdict.kind}: {verdict.name}: {verdict.reason}")
    return Counter(verdict.kind for verdict in verdicts)


def main() -> int:
    """Judge all cases; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--verbose", action="store_true", help="a line for every case")
    verbose = parser.parse_args().verbose
    planted = run(MISCOMPILES, verbose=verbose, expected=["different"])
    right = run(REWRITES, verbose=verbose, expected=["equal"])
    named = planted["not compared"] + planted["not decided"]
    unnamed = planted.total() - planted["different"] - named
    print(
        f"{planted['different']} of {planted.total()} miscompiles found, "
        f"{planted['not compared']} named as not compared, {planted['not decided']} not decided, "
        f"{unnamed} missed"
    )
    good = right["equal"] + right["not compared"] + right["on special values alone"]
    print(
        f"{good} of {right.total()} right rewrites equal, {right['different']} called different, "
        f"{right.total() - good - right['different']} not decided"
    )
    few = planted.total() - planted["different"] > _MOST_UNFOUND
    return 1 if few or unnamed or good < right.total() else 0


if __name__ == "__main__":
    sys.exit(main())
