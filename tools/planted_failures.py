#!/usr/bin/env python3
"""List the planted failures that `reduce` and `bisect` are measured with, or check them.

    tools/planted_failures.py [--check] [--filter RE]

Each is a pass with a bug, a module that shows it, the smallest module that does, and the run and
application of the pass that are to blame. `--check` runs the passes: the module and the smallest
one verify and fail with the signature that is written down, at the application that is, and not
without it; a pass that does not end is killed after some seconds. Benchmarks are read from
$HLOOPT_SHARED, else ../shared; without it their cases are left out. Exits 1 if something is not as
it is written down.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator

from failures_lib.case import PlantedFailure
from failures_lib.cases import FAILURES
from failures_lib.showing import show
from hloopt.diagnostics import HloError
from hloopt.text import parse_module


def problems(case: PlantedFailure, text: str) -> Iterator[str]:
    """All that is not as the case says, of its input `text` and its smallest module."""
    count = parse_module(text).instruction_count()
    if count != case.instructions:
        yield f"{count} instructions, not {case.instructions}"
    limit = case.culprit.limit
    try:
        shown = show(case, text, limit or None)
        smallest = show(case, case.smallest)
        earlier = show(case, text, limit - 1) if limit else None
    except HloError as error:
        yield f"cannot run: {error.message}"
        return
    if shown is None:
        yield f"not shown with {limit} applications" if limit else "not shown"
    else:
        if shown.signature != case.signature:
            yield f"another failure: {shown.signature}"
        if limit and shown.culprit != case.culprit:
            yield f"another culprit: {shown.culprit}"
    if earlier is not None:
        yield f"shown with {limit - 1} applications, too"
    if smallest is None or smallest.signature != case.signature:
        yield f"the smallest module shows {smallest.signature if smallest else 'nothing'}"


def check(case: PlantedFailure) -> bool:
    """Check a case and print a line, with the seconds that one run takes; whether all is right."""
    try:
        text = case.text()
    except FileNotFoundError as error:
        print(f"left out: {case.name}: there is no {error.filename}")
        return True
    started = time.perf_counter()
    show(case, text)
    seconds = time.perf_counter() - started
    found = list(problems(case, text))
    print(f"{'no' if found else 'ok'}  {seconds:5.1f} s  {_line(case)}", flush=True)
    for problem in found:
        print(f"    {problem}")
    return not found


def _line(case: PlantedFailure) -> str:
    smallest = parse_module(case.smallest).instruction_count()
    return f"{case.instructions:6} → {smallest:2}  {case.kind}: {case.name}"


def main() -> int:
    """List or check the cases that the command line names; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="run the passes")
    parser.add_argument("--filter", default="", metavar="RE", help="of kinds and names")
    arguments = parser.parse_args()
    pattern = re.compile(arguments.filter)
    chosen = [c for c in FAILURES if pattern.search(f"{c.kind}: {c.name}")]
    if not arguments.check:
        print(*map(_line, chosen), sep="\n")
        return 0
    right = [check(case) for case in chosen]
    print(f"{sum(right)} of {len(right)} planted failures are as they are written down")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
