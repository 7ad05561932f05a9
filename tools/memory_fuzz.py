#!/usr/bin/env python3
"""Place the buffers of random programs, and compare them with those of XLA:GPU's compiler.

    tools/memory_fuzz.py --shared DIR --ask PYTHON [--seed S] [--count N] [--save DIR] [--again]
    tools/memory_fuzz.py --seed S --show N

Programs of a generator of our own have arrays of all types, of no elements and of many, on which
they compute, sort, gather, scatter and update in place; loops, branches and calls, one in the
other; collectives of several partitions or replicas; constants, calls of libraries, donations and
parameters that are results. PYTHON is an interpreter with XLA:GPU's compiler (oracle/XLA_GPU.md);
no GPU is needed. It compiles each program; ours reads the text after the last pass.

Sizes of all allocations have to be equal, kind by kind, with no value over another that is needed;
offsets of values are counted apart.

Answers are kept in DIR/seed-S.jsonl: a sweep that was killed goes on where it was, unless the
sources changed. Exits 1 if fewer than 99.5 % of the programs have XLA's sizes, 2 for wrong usage.
Needs Linux.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from memory_fuzz_lib.subject import Programs, outcome_table
from sweep_lib.compiled import compiled_parser, run_compiled
from sweep_lib.sweep import Sweep

BAR = 0.995


def main() -> int:
    """Examine as many programs as the command line says; the exit code."""
    parser = compiled_parser("Buffers of random programs, ours and XLA:GPU's.", 1000, "memory-fuzz")
    arguments = parser.parse_args()
    programs = Programs(arguments.seed, arguments.shared or Path(), arguments.ask or "")
    return run_compiled(parser, arguments, programs, _report)


def _report(sweep: Sweep, outcomes: Counter[str]) -> int:
    print(outcome_table(outcomes))
    print(sweep.summary(f"{outcomes['lost']:,} without an answer"))
    equal, total = outcomes["equal"], outcomes["programs"]
    return int(equal < BAR * total or not total)


if __name__ == "__main__":
    sys.exit(main())
