#!/usr/bin/env python3
"""Run random chains of passes on random programs, and compare what these compute.

    tools/random_differential.py [--seed S] [--count N] [--jobs J] [--save DIR] [--again]
                                 [--only PASS]
    tools/random_differential.py --seed S --show N

Programs of a generator of our own, on 1 to 4 devices, go through 1 to 5 passes out of all that are
registered, but for searches, with random options; with `--only`, through that one. After each pass
the module is verified, printed and read back; in the end it runs beside the original in the
interpreter, on the same inputs. A module that computes something else, is invalid or is not read
back, and any exception, is a finding: the first of each kind is made smaller and saved in `--save`,
with the chain in its last line.

Answers are kept in DIR/seed-S.jsonl: a sweep that was killed goes on where it was, unless the
sources changed. Ends with what each pass did; a pass that never changed anything is named. Exits 1
if there are findings, 2 for wrong usage. Needs Linux.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from differential_lib.chains import LEFT_OUT, OWN_SWEEPS, Step, chain
from differential_lib.generate import dice_of, program_text
from differential_lib.judge import judge
from differential_lib.shrinking import shrunk
from hloopt.pass_framework.registry import PASSES
from sweep_lib.arguments import sweep_of, sweep_parser
from sweep_lib.findings import Finding, Progress
from sweep_lib.limits import Limits

_OUTCOMES = ("equal", "unchanged", "undecided", "cannot run", "invalid", "different", "broken")
_PER_SLICE = 250


class Programs(NamedTuple):
    """The programs of a seed, each with its chain; what a sweep examines."""

    seed: int
    seconds: float = 20.0
    """Of processor time, for one program."""
    megabytes: int = 1000
    shrinking_seconds: float = 40.0
    only: str | None = None
    """The one pass that runs."""

    @property
    def patience(self) -> float:
        return 6 * self.seconds + 4 * self.shrinking_seconds

    def start(self) -> None:
        pass

    def case(self, number: int) -> tuple[str, list[Step]]:
        """A program and its chain."""
        return program_text(self.seed, number), chain(
            dice_of(self.seed, number, "chain"), self.only
        )

    def content(self, number: int) -> bytes:
        return _file(*self.case(number))

    def examine(self, number: int, known: set[str]) -> Progress:
        text, steps = self.case(number)
        limits = Limits(self.seconds, self.megabytes)
        with limits:
            verdict = judge(text, steps)
        progress = Progress(1, Counter({verdict.outcome: 1}) + verdict.passes)
        problem = verdict.problem
        if problem is None:
            return progress
        if problem.kind not in known:
            known.add(problem.kind)

            def still_fails(candidate: str, fewer: Sequence[Step]) -> bool:
                with limits:
                    found = judge(candidate, fewer).problem
                return found is not None and found.kind == problem.kind

            text, steps = shrunk(text, steps, still_fails, self.shrinking_seconds)
        progress.findings.append(Finding(number, problem, _file(text, steps)))
        return progress


def _file(text: str, steps: list[Step]) -> bytes:
    return f"{text.rstrip()}\n// --passes '{','.join(map(str, steps))}'\n".encode()


def main() -> int:
    """Examine as many programs as the command line says; the exit code."""
    arguments = _arguments()
    programs = Programs(arguments.seed, only=arguments.only)
    if arguments.show is not None:
        sys.stdout.write(programs.content(arguments.show).decode())
        return 0
    settings = f"seed {arguments.seed}" + (f", {arguments.only}" if arguments.only else "")
    sweep = sweep_of(programs, arguments, "programs", settings)
    sweep.run(arguments.count, arguments.jobs, _PER_SLICE)
    outcomes = sweep.state.total.outcomes
    tried = [arguments.only] if arguments.only else sorted(PASSES.keys() - OWN_SWEEPS.keys())
    print(_coverage(outcomes, tried))
    counts = ", ".join(f"{outcomes[o]:,} {o}" for o in _OUTCOMES if outcomes[o])
    print(sweep.summary(counts))
    return 1 if sweep.state.kinds else 0


def _coverage(outcomes: Counter[str], names: Sequence[str]) -> str:
    """A table of what the passes did and what could not be run."""
    wide = max(map(len, names))
    lines = [f"{'pass':{wide}} {'ran':>7} {'changed':>8} {'refused':>8}"]
    for name in names:
        counts = [outcomes[f"{what} {name}"] for what in ("ran", "changed", "refused")]
        lines.append(f"{name:{wide}} {counts[0]:7,} {counts[1]:8,} {counts[2]:8,}")
    idle = [name for name in names if not outcomes[f"changed {name}"]]
    lines.append(f"changed nothing: {', '.join(idle) or 'none'}")
    lines.append(f"options never set: {', '.join('.'.join(option) for option in LEFT_OUT)}")
    lines += [f"{count:,} {what}" for what, count in outcomes.items() if "cannot run:" in what]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    description = "Random chains of passes on random programs."
    parser = sweep_parser(description, "programs", 20_000, "random-differential")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", choices=sorted(PASSES), metavar="PASS", help="the one pass")
    parser.add_argument("--show", type=int, metavar="N", help="print program N and its chain")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
