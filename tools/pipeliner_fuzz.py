#!/usr/bin/env python3
"""Pipeline the collectives of random loops, ours and XLA:GPU's, and compare.

    tools/pipeliner_fuzz.py --shared DIR --ask PYTHON [--seed S] [--count N] [--save DIR] [--again]
    tools/pipeliner_fuzz.py --seed S --show N

Programs of a generator of our own have counted loops, some in other loops, that read a slice of a
buffer in each trip, exchange it with other devices and store it. PYTHON is an interpreter with
XLA:GPU's compiler (oracle/XLA_GPU.md); no GPU is needed. It runs its three pipeliners alone; ours
gets what each of them was given. The loops that are pipelined have to be the same, and what both
make has to compute the same, by the interpreter; where XLA's result computes something else than
the program, as of loops with `<=`, ours has to compute what the program does.

Answers are kept in DIR/seed-S.jsonl: a sweep that was killed goes on where it was, unless the
sources changed. Exits 1 if any program differs, 2 for wrong usage. Needs Linux.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from hloopt.compilers.comparing import Verdict
from pipeliner_fuzz_lib.subject import CHANNELS, WRONG, Programs
from sweep_lib.compiled import compiled_parser, run_compiled
from sweep_lib.sweep import Sweep


def main() -> int:
    """Examine as many programs as the command line says; the exit code."""
    parser = compiled_parser("Pipelined loops, ours and XLA:GPU's.", 500, "pipeliner-fuzz")
    arguments = parser.parse_args()
    programs = Programs(arguments.seed, arguments.shared or Path(), arguments.ask or "")
    return run_compiled(parser, arguments, programs, _report)


def _report(sweep: Sweep, outcomes: Counter[str]) -> int:
    verdicts = ", ".join(f"{outcomes[str(verdict)]:,} {verdict}" for verdict in Verdict)
    print(
        sweep.summary(
            f"{outcomes['equal']:,} of {outcomes['programs']:,} equal, something is pipelined in "
            f"{outcomes['pipelined']:,} ({outcomes['loops']:,} loops); of {outcomes['runs']:,} "
            f"runs that change something {outcomes[CHANNELS]:,} {CHANNELS}, {verdicts}, "
            f"{outcomes[WRONG]:,} {WRONG}; {outcomes['lost']:,} without an answer"
        )
    )
    return int(outcomes["equal"] < outcomes["programs"] or not outcomes["programs"])


if __name__ == "__main__":
    sys.exit(main())
