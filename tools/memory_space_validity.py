#!/usr/bin/env python3
"""Hold memory space assignment to its laws, on the benchmarks and on random programs.

    tools/memory_space_validity.py --shared DIR [--target NAME] [--sizes MIB,MIB] [--match TEXT]
    tools/memory_space_validity.py --shared DIR --run [--match TEXT]
    tools/memory_space_validity.py --random COUNT [--seed S]
    tools/memory_space_validity.py --show N [--seed S]

Modules of DIR/corpus/benchmarks without a schedule get one. Each is assigned with alternate memory
of each size, times by the rates of a target; what comes of it is checked by tools/memory_space_lib,
which shares nothing with the pass. Prints a row for each: instructions, seconds of the pass, the
part of the values and of the bytes that are in alternate memory at some time, copies, and "ok" or
the number of faults, whose first ones follow.

`--run` runs them in the interpreter before and after the pass, which has 16 MiB and then both are
shrunk, or gets the shrunk module and so little that at least 30 % of the values stay outside.

`--random` checks as many random programs with random options and runs them in the interpreter
before and after the pass; `--show` prints one of them, with its result by time, and its faults.

Exits 1 if there are faults, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from memory_space_lib.benchmarks import Row, header, row_of
from memory_space_lib.random_runs import run_random, shown_case
from memory_space_lib.shrunk import ShrunkRun, shrunk_header, shrunk_runs

_SIZES = "16,64,128"
_MOST_SHOWN = 3


def main() -> int:
    """Check what the command line says; the exit code."""
    parser = argparse.ArgumentParser(description="Memory space assignment held to its laws.")
    parser.add_argument("--shared", type=Path, help="folder with corpus/")
    parser.add_argument("--target", default="tpu_v5e", help="the target whose rates count")
    parser.add_argument("--sizes", default=_SIZES, help="sizes of alternate memory in MiB")
    parser.add_argument("--match", default="", help="only modules with this text in their name")
    parser.add_argument("--run", action="store_true", help="run them, shrunk, before and after")
    parser.add_argument("--random", type=int, metavar="COUNT", help="random programs instead")
    parser.add_argument("--show", type=int, metavar="N", help="print random program N")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other programs")
    arguments = parser.parse_args()
    if arguments.show is not None:
        print(shown_case(arguments.seed, arguments.show))
        return 0
    if arguments.random is not None:
        return run_random(arguments.seed, arguments.random)
    if arguments.shared is None:
        parser.error("--shared or --random: what is to be checked?")
    paths = sorted((arguments.shared / "corpus" / "benchmarks").glob("*.hlo"))
    wanted = [path for path in paths if arguments.match in path.name]
    if not wanted:
        parser.error(f"no module of {arguments.shared}/corpus/benchmarks is called so")
    if arguments.run:
        print(shrunk_header())
        runs = (run for path in wanted for run in shrunk_runs(path, arguments.target))
        return int(sum(map(_print_run, runs)) > 0)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    print(header())
    rows = (row_of(path, size, arguments.target) for path in wanted for size in sizes)
    return int(sum(map(_print, rows)) > 0)


def _print_run(run: ShrunkRun) -> int:
    """Print a run; 1 if it does not compute the same."""
    print(run, flush=True)
    return int(run.verdict != "equal")


def _print(row: Row) -> int:
    """Print a row; the number of its faults."""
    print(row, flush=True)
    for fault in row.faults[:_MOST_SHOWN]:
        print(f"    {fault}")
    return len(row.faults)


if __name__ == "__main__":
    sys.exit(main())
