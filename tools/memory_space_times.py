#!/usr/bin/env python3
"""Search memory space assignments of the benchmarks, and compare times by the cost model.

    tools/memory_space_times.py --shared DIR [--target NAME] [--sizes MIB,MIB] [--match TEXT]
                                [--budget 60s] [--seed N] [--jobs N] [--write]

Modules of DIR/corpus/benchmarks get calls inlined, parameters first, and a schedule where they have
none. Prints a row for each and each size of alternate memory: milliseconds with everything in
default memory, by the heuristic, by the search, and the least that any assignment could take; with
--write the table goes into docs/memory_spaces.md. Exits 1 if a searched time is above the
heuristic's, or that above the one with everything in default memory, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from document_tables import DOCUMENTS, renew_tables
from hloopt.pass_framework.options import parse_seconds
from memory_space_lib.times import HEAD, Times, searched, summary

_DOCUMENT = DOCUMENTS / "memory_spaces.md"


def main() -> int:
    """Print the table; 1 if the pass or a search made something worse."""
    parser = argparse.ArgumentParser(description="Searched memory space assignments.")
    parser.add_argument("--shared", type=Path, required=True, help="folder with corpus/")
    parser.add_argument("--target", default="tpu_v5e", help="the target whose rates count")
    parser.add_argument("--sizes", default="16,64,128", help="sizes of alternate memory in MiB")
    parser.add_argument("--match", default="", help="only modules with this text in their name")
    parser.add_argument("--budget", default="60s", help="time per row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="rows searched at one time")
    parser.add_argument("--write", action="store_true", help="renew the table of the document")
    arguments = parser.parse_args()
    budget = parse_seconds(arguments.budget)
    if budget is None:
        parser.error(f"--budget takes a time such as 60s, not {arguments.budget}")
    paths = sorted((arguments.shared / "corpus" / "benchmarks").glob("*.hlo"))
    wanted = [path for path in paths if arguments.match in path.name]
    if not wanted:
        parser.error(f"no module of {arguments.shared}/corpus/benchmarks is called so")
    sizes = [int(size) for size in arguments.sizes.split(",")]
    found: list[Times] = []
    print(*HEAD, sep="  ")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        rows = [
            pool.submit(searched, path, size, arguments.target, budget, arguments.seed)
            for path in wanted
            for size in sizes
        ]
        for row in rows:
            found.append(row.result())
            print(*found[-1].cells(), sep="  ", flush=True)
    lines = summary(found)
    print(*lines, sep="\n")
    if arguments.write:
        about = f"Target {arguments.target}, {arguments.budget} per row, seed {arguments.seed}."
        renew_tables(_DOCUMENT, {"times": "\n".join([*_table(found), "", *lines, about])})
    times = [(one.outcome.seconds, one.outcome.heuristic, one.outcome.plain) for one in found]
    return int(any(row != tuple(sorted(row)) for row in times))


def _table(found: list[Times]) -> list[str]:
    rows = [HEAD, ("---", *["---:"] * (len(HEAD) - 1)), *(one.cells() for one in found)]
    return [f"| {' | '.join(row)} |" for row in rows]


if __name__ == "__main__":
    sys.exit(main())
