#!/usr/bin/env python3
"""Schedule random programs as XLA:GPU's compiler does, and compare the orders.

    tools/schedule_fuzz.py --shared DIR --ask PYTHON [--seed S] [--count N] [--save DIR] [--again]
    tools/schedule_fuzz.py --shared DIR --ask PYTHON --files FILE…
    tools/schedule_fuzz.py --seed S --show N

Programs of a generator of our own have collectives with opcodes of their own and wrapped ones,
sends and receives, copies, threads, loops, calls, branches, groups, hints and control edges. Each
block of 20 has a setting: overlap limits, multi-streaming, early starts, little memory, a profile,
speed of light. PYTHON is an interpreter with XLA:GPU's compiler (oracle/XLA_GPU.md); no GPU is
needed.

The compiler gives the order in which its memory scheduler puts the program, and the one that its
latency-hiding scheduler makes of that. Ours begins with XLA's order for memory (the share that
counts), and, in a second comparison, with our own. What differs is made smaller by leaving out
steps of the generator, and saved in `--save` with the first difference.

Answers are kept in DIR/seed-S.jsonl: a sweep that was killed goes on where it was, unless the
sources changed. With `--files` programs that somebody wrote take the place of random ones, each
under every setting. Exits 1 if fewer than 99.5 % of the computations have XLA's order, 2 for wrong
usage. Needs Linux.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from hloopt.diagnostics import HloError
from schedule_fuzz_lib.compiler import Compiler
from schedule_fuzz_lib.given import compare_files
from schedule_fuzz_lib.subject import Programs, outcome_table
from sweep_lib.compiled import compiled_parser, require_compiler, run_compiled
from sweep_lib.sweep import Sweep

BAR = 0.995
_COUNTS = {
    "refused": "refused by XLA",
    "refused as we say": "of them scheduled by us with a remark",
    "refused by XLA alone": "of them not by us",
    "lost": "without an answer",
    "nothing scheduled": "with nothing to schedule",
    "starts": "orders for memory",
    "equal starts": "of them equal",
}


def main() -> int:
    """Examine as many programs as the command line says; the exit code."""
    parser = _parser()
    arguments = parser.parse_args()
    programs = Programs(
        arguments.seed, arguments.shared or Path(), arguments.ask or "", arguments.reduce
    )
    if arguments.files:
        require_compiler(parser, arguments)
        return _compare_files(parser, arguments)
    return run_compiled(parser, arguments, programs, _report)


def _report(sweep: Sweep, outcomes: Counter[str]) -> int:
    print(outcome_table(outcomes))
    print(sweep.summary(_counts(outcomes)))
    return int(outcomes["equal"] < BAR * outcomes["computations"])


def _compare_files(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    try:
        compiler = Compiler(arguments.shared, arguments.ask)
        lines, outcomes = compare_files(compiler, arguments.files)
    except HloError as error:
        parser.error(error.message)
    print("\n".join(lines))
    print(
        f"{outcomes['equal']:,} of {outcomes['computations']:,} orders equal; {_counts(outcomes)}"
    )
    return int(outcomes["equal"] < outcomes["computations"])


def _counts(outcomes: Counter[str]) -> str:
    return ", ".join(f"{outcomes[key]:,} {text}" for key, text in _COUNTS.items())


def _parser() -> argparse.ArgumentParser:
    description = "Orders of random programs, ours and XLA:GPU's."
    parser = compiled_parser(description, 1000, "schedule-fuzz")
    parser.add_argument(
        "--reduce", type=float, default=60.0, help="seconds to make a finding smaller; 0: do not"
    )
    parser.add_argument("--files", type=Path, nargs="+", help="programs in place of random ones")
    return parser


if __name__ == "__main__":
    sys.exit(main())
