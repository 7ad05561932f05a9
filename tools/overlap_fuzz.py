#!/usr/bin/env python3
"""Let overlap-search and memory-search decide about random loops; compare what these compute.

    tools/overlap_fuzz.py [--seed S] [--count N] [--jobs J] [--save DIR] [--again]
    tools/overlap_fuzz.py --seed S --show N

The programs are those of pipeliner_fuzz.py: counted loops, some in other loops, that read a slice
of a buffer in each trip, exchange it with other devices and store it. Every second one has a
schedule. overlap-search may use as much memory as it likes, so that it decides much; memory-search,
which one program in four goes through, has to reach a limit. Results are verified, printed and
read back, and run beside the original in the interpreter.

Answers are kept in DIR/seed-S.jsonl: a sweep that was killed goes on where it was, unless the
sources changed. Exits 1 if there are findings, 2 for wrong usage. Needs Linux.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import NamedTuple

from differential_lib.chains import Step
from differential_lib.judge import judge
from pipeliner_fuzz_lib.programs import program
from sweep_lib.arguments import sweep_of, sweep_parser
from sweep_lib.findings import Finding, Progress
from sweep_lib.limits import Limits

_PER_SLICE = 20
_LIMITS = (1 << 9, 1 << 10, 3 << 9, 1 << 11, 3 << 10, 1 << 12)
"""Bytes that memory-search has to reach."""
_SCHEDULE = Step("hlo-memory-scheduler", {"preset": "xla-gpu"})


class Programs(NamedTuple):
    """The programs of a seed; what a sweep examines."""

    seed: int
    seconds: float = 120.0
    """Of processor time, for one program."""
    megabytes: int = 2000

    @property
    def patience(self) -> float:
        return 6 * self.seconds

    def start(self) -> None:
        pass

    def steps(self, number: int) -> list[Step]:
        """The passes that a program goes through."""
        search = {"target": "h100_sxm", "iterations": 12, "seed": number}
        if number % 4 == 3:
            limit = _LIMITS[number // 4 % len(_LIMITS)]
            return [_SCHEDULE, Step("memory-search", {**search, "memory_limit": limit})]
        overlap = Step("overlap-search", {**search, "memory_limit": 1 << 40})
        return [_SCHEDULE] * (number % 2) + [overlap]

    def content(self, number: int) -> bytes:
        text = program(self.seed, number).rstrip()
        return f"{text}\n// --passes '{','.join(map(str, self.steps(number)))}'\n".encode()

    def examine(self, number: int, known: set[str]) -> Progress:
        with Limits(self.seconds, self.megabytes):
            verdict = judge(program(self.seed, number), self.steps(number))
        changes = verdict.passes["changed overlap-search"]
        progress = Progress(1, Counter({verdict.outcome: 1, "decided": changes}))
        if verdict.problem is not None:
            known.add(verdict.problem.kind)
            progress.findings.append(Finding(number, verdict.problem, self.content(number)))
        return progress


def main() -> int:
    """Examine as many programs as the command line says; the exit code."""
    arguments = _arguments()
    programs = Programs(arguments.seed)
    if arguments.show is not None:
        sys.stdout.write(programs.content(arguments.show).decode())
        return 0
    sweep = sweep_of(programs, arguments, "programs")
    sweep.run(arguments.count, arguments.jobs, _PER_SLICE)
    outcomes = sweep.state.total.outcomes
    print(sweep.summary(", ".join(f"{count:,} {what}" for what, count in outcomes.items())))
    return 1 if sweep.state.kinds else 0


def _arguments() -> argparse.Namespace:
    parser = sweep_parser("Random loops and overlap-search.", "programs", 1000, "overlap-fuzz")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--show", type=int, metavar="N", help="print program N and its passes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
