#!/usr/bin/env python3
"""Place the buffers of random programs, and compare them with those of XLA:GPU's compiler.

    tools/memory_fuzz.py --shared DIR --ask PYTHON [--seed S] [--count N] [--save DIR] [--again]
    tools/memory_fuzz.py --seed S --show N

Programs of a generator of our own have elementwise operations, reductions of rows and columns,
products, transposes and updates in place on shared operands, of which XLA:GPU makes fusions of
several results. PYTHON is an interpreter with its compiler (oracle/XLA_GPU.md); no GPU is needed.
It compiles each program; ours reads the text after the last pass. All allocations have to be equal,
and the offsets of all values.

Answers are kept in DIR/seed-S.jsonl: a sweep that was killed goes on where it was, unless the
sources changed. Exits 1 if any program differs, 2 for wrong usage. Needs Linux.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from memory_fuzz_lib.subject import Programs
from sweep_lib.compiled import compiled_parser, run_compiled
from sweep_lib.sweep import Sweep


def main() -> int:
    """Examine as many programs as the command line says; the exit code."""
    parser = compiled_parser("Buffers of random programs, ours and XLA:GPU's.", 600, "memory-fuzz")
    arguments = parser.parse_args()
    programs = Programs(arguments.seed, arguments.shared or Path(), arguments.ask or "")
    return run_compiled(parser, arguments, programs, _report)


def _report(sweep: Sweep, outcomes: Counter[str]) -> int:
    print(
        sweep.summary(
            f"{outcomes['equal']:,} of {outcomes['programs']:,} equal, "
            f"{outcomes['equal offsets']:,} of {outcomes['offsets']:,} offsets, "
            f"{outcomes['fusions of several results']:,} fusions of several results, "
            f"{outcomes['lost']:,} without an answer"
        )
    )
    return int(outcomes["equal"] < outcomes["programs"] or not outcomes["programs"])


if __name__ == "__main__":
    sys.exit(main())
