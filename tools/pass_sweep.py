#!/usr/bin/env python3
"""Run each pass alone, and each pipeline, on modules of the corpus, validated on 1, 2, 4 devices.

    tools/pass_sweep.py [--shared DIR] [--seed S] [--count N] [--most I] [--only REGEX]
                        [--files REGEX] [--jobs J] [--save DIR] [--again]

Cases are all registered passes with each row of `pass_sweep_lib/options.py`, presets, and shipped
pipelines; `--only` takes those in which the pattern is found. They run on the modules of the corpus
that XLA reads and on those of testdata/, of at most `--most` instructions, in an order by seed;
`--files` takes those whose paths have the pattern. Where a case changes a module, both run on the
same inputs and are compared as by `--validate`: what the passes declare to preserve has to be
equal. That happens on the devices the module is for. Where devices exchange something or tell
themselves apart, all cases follow with headers for 1, 2 and 4 replicas or partitions; else those
that changed the module, with 2 replicas or 4 partitions in turn. What is too large to run is
compared with smaller dimensions.

Answers are kept in DIR/seed-S.jsonl: a sweep that was killed goes on where it was, unless the
sources changed. The first finding of each kind is saved, with the passes in its last line. Ends
with a table of what each case did. Exits 1 if anything is wrong. Needs Linux.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from corpus import read_corpus
from hloopt.diagnostics import HloError
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module
from pass_sweep_lib.cases import RARE, Case, all_cases
from pass_sweep_lib.judge import Bench
from pass_sweep_lib.modules import depends_on_devices, other_grids, prepared
from sweep_lib.arguments import sweep_of, sweep_parser
from sweep_lib.findings import Finding, Progress
from sweep_lib.limits import Limits

OUTCOMES = ("equal", "shrunken", "unchanged", "refused", "undecided", "cannot run", "wrong")
_ROOT = Path(__file__).resolve().parent.parent
_PER_SLICE = 5


class Modules(NamedTuple):
    """The modules in their order; what a sweep examines."""

    files: tuple[str, ...]
    most: int = 500
    """Instructions of a module."""
    only: str = ""
    seconds: float = 10.0
    """Of processor time, for one case on one module."""
    megabytes: int = 2000

    @property
    def patience(self) -> float:
        return 200 * self.seconds

    def start(self) -> None:
        pass

    def content(self, number: int) -> bytes:
        return _text(self.files[number]).encode()

    def examine(self, number: int, known: set[str]) -> Progress:
        """Run all cases on a module; `known` is not needed, as nothing is reduced."""
        text = _text(self.files[number])
        try:
            module = parse_module(text)
            own, exchanges = device_counts(module), depends_on_devices(module)
            if (count := module.instruction_count()) > self.most or verify_module(
                module, ANY_TARGET
            ):
                return Progress(1, Counter({"too many" if count > self.most else "invalid": 1}))
        except HloError:
            return Progress(1, Counter(invalid=1))
        progress = Progress(1, Counter(modules=1))
        cases = [c for c in _cases(self.only) if not number % RARE.get(c.name, 1)]
        changing = self._try(number, own, text, cases, progress)
        for grid, put in other_grids(text, number) if exchanges or changing else ():
            self._try(number, grid, put, cases if exchanges else changing, progress)
        return progress

    def _try(
        self, number: int, grid: Grid, text: str, cases: list[Case], progress: Progress
    ) -> list[Case]:
        """Run cases on a text; those that changed it."""
        benches: dict[tuple[bool, bool], Bench] = {}
        changing: list[Case] = []
        ran = False
        for case in cases:
            wanted = (case.needs_schedule, case.needs_flat_calls)
            with Limits(self.seconds, self.megabytes):
                if wanted not in benches:
                    benches[wanted] = Bench(prepared(text, case))
                verdict = benches[wanted].judge(case)
            progress.outcomes[f"{verdict.outcome} {case.passes}"] += 1
            changing += [case] * verdict.changed
            if verdict.outcome in ("equal", "shrunken"):
                ran = True
                progress.outcomes[f"compared on {grid.replicas * grid.partitions}"] += 1
            if verdict.problem is not None:
                content = f"// {self.files[number]}\n{prepared(text, case).rstrip()}\n"
                content += f"// --passes '{case.passes}'\n"
                progress.findings.append(Finding(number, verdict.problem, content.encode()))
            if verdict.outcome == "cannot run":
                reason = re.sub(r"%[\w.\-]+", "%…", verdict.reason.splitlines()[0])
                progress.outcomes[f"why: {re.sub(r'[0-9][0-9,.]*', 'N', reason)[:100]}"] += 1
        progress.outcomes[f"modules that ran on {grid.replicas * grid.partitions}"] += ran
        return changing


def _text(file: str) -> str:
    data = Path(file).read_bytes()
    return (gzip.decompress(data) if file.endswith(".gz") else data).decode(errors="replace")


@lru_cache
def _cases(only: str) -> list[Case]:
    return [case for case in all_cases() if re.search(only, case.passes)]


def module_files(shared: Path | None, seed: int, pattern: str = "") -> tuple[str, ...]:
    """The files of the corpus that XLA reads, and those of testdata/, in an order by seed."""
    files = sorted(_ROOT.glob("testdata/*.hlo*"))
    if shared is not None:
        files += [e.path for e in read_corpus(shared / "corpus") if e.verdict == "ok"]
    random.Random(seed).shuffle(files)
    return tuple(str(file) for file in files if re.search(pattern, str(file)))


def main() -> int:
    """Examine as many modules as the command line says; the exit code."""
    arguments = _arguments()
    files = module_files(arguments.shared, arguments.seed, arguments.files)
    modules = Modules(files, arguments.most, arguments.only)
    chosen = ", ".join(filter(None, (arguments.only, arguments.files)))
    settings = f"seed {arguments.seed}, at most {arguments.most}, {chosen}"
    sweep = sweep_of(modules, arguments, "modules", settings)
    sweep.run(min(arguments.count, len(files)), arguments.jobs, _PER_SLICE)
    outcomes = sweep.state.total.outcomes
    print(table(outcomes, _cases(arguments.only)))
    reasons = [(n, reason) for reason, n in outcomes.items() if reason.startswith("why: ")]
    print("\n".join(f"{n:,} {reason}" for n, reason in sorted(reasons, reverse=True)[:20]))
    print(sweep.summary(", ".join(f"{outcomes[o]:,} {o}" for o in _TOTALS if outcomes[o])))
    return 1 if sweep.state.kinds else 0


_TOTALS = ("modules", "too many", "invalid", "lost", *OUTCOMES)


def table(outcomes: Counter[str], cases: list[Case]) -> str:
    """A table of the outcomes of each case; sums by outcome are added to `outcomes`."""
    lines = [" ".join(f"{outcome:>10}" for outcome in OUTCOMES)]
    for case in cases:
        counts = [outcomes[f"{outcome} {case.passes}"] for outcome in OUTCOMES]
        outcomes.update(dict(zip(OUTCOMES, counts, strict=True)))
        lines.append(" ".join(f"{count:10,}" for count in counts) + f" {case.passes}")
    lines += [f"{n:,} {what}" for what, n in sorted(outcomes.items()) if " on " in what and n]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    description = (__doc__ or "").partition("\n")[0]
    parser = sweep_parser(description, "modules", 10_000, "pass-sweep")
    parser.add_argument("--shared", type=Path, help="the folder of corpus/")
    parser.add_argument("--most", type=int, default=500, help="instructions of a module")
    parser.add_argument("--only", default="", metavar="REGEX", help="only these passes")
    parser.add_argument("--files", default="", metavar="REGEX", help="only these modules")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
