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

import argparse
import sys
from collections import Counter
from pathlib import Path

from hloopt.diagnostics import HloError
from memory_fuzz_lib.subject import BLOCK, Programs
from oracle_script import check_gpu_compiler
from sweep_lib.arguments import sweep_of, sweep_parser


def main() -> int:
    """Examine as many programs as the command line says; the exit code."""
    parser = _parser()
    arguments = parser.parse_args()
    programs = Programs(arguments.seed, arguments.shared or Path(), arguments.ask or "")
    if arguments.show is not None:
        sys.stdout.write(programs.content(arguments.show).decode())
        return 0
    if not arguments.shared or not arguments.ask:
        parser.error("--shared and --ask are needed: the compiler answers")
    try:
        check_gpu_compiler(arguments.shared, arguments.ask)
    except HloError as error:
        parser.error(error.message)
    sweep = sweep_of(programs, arguments, "programs")
    sweep.run(arguments.count, jobs=1, longest=BLOCK)
    outcomes: Counter[str] = sweep.state.total.outcomes
    print(
        sweep.summary(
            f"{outcomes['equal']:,} of {outcomes['programs']:,} equal, "
            f"{outcomes['equal offsets']:,} of {outcomes['offsets']:,} offsets, "
            f"{outcomes['fusions of several results']:,} fusions of several results, "
            f"{outcomes['lost']:,} without an answer"
        )
    )
    return int(outcomes["equal"] < outcomes["programs"] or not outcomes["programs"])


def _parser() -> argparse.ArgumentParser:
    description = "Buffers of random programs, ours and XLA:GPU's."
    parser = sweep_parser(description, "programs", 600, "memory-fuzz")
    parser.add_argument("--shared", type=Path, help="the folder of oracle/")
    parser.add_argument("--ask", metavar="PYTHON", help="ask the compiler that this Python has")
    parser.add_argument("--show", type=int, metavar="N", help="print program N")
    return parser


if __name__ == "__main__":
    sys.exit(main())
