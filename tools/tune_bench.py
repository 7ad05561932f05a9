"""Compare `hloopt tune` with all combinations of five flags, on recorded training steps.

    tools/tune_bench.py --shared ../shared --plugin PATH --results build/tune_bench.jsonl

Of each step: the best of 32 compiles, what the search finds, and with how many compiles. Exits with
1 if it is more than 2 % above the best, or made more than half of the compiles. Results are kept,
so that a run goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path

from hloopt.compilers.compiling import Compiler
from hloopt.compilers.plugins import version_of
from hloopt.compilers.programs import Program
from hloopt.processes import in_processes
from hloopt.tuning.journal import Journal
from hloopt.tuning.judgement import Choice, Judge, Judged
from hloopt.tuning.search import Search

STEPS = (
    "fsdp_mlp_scan_1x8",
    "fsdp_tp_two_axes_1x8",
    "tp_transformer_unrolled_1x8",
    "pipeline_chain_scan_1x4",
)
SPACE = {
    "xla_gpu_enable_pipelined_all_gather": ["true"],
    "xla_gpu_enable_pipelined_all_reduce": ["true"],
    "xla_gpu_enable_pipelined_reduce_scatter": ["true"],
    "xla_gpu_enable_while_loop_double_buffering": ["true"],
    "xla_gpu_experimental_parallel_collective_overlap_limit": ["4"],
}
TARGET = "h100_sxm"
MOST_ABOVE = 1.02
TIMEOUT = 600.0


def main() -> int:
    """Measure, and say whether the bars are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    compiler = Compiler.named(TARGET, arguments.plugin)
    missed = 0
    print(f"{'step':32} {'default':>10} {'best of 32':>10} {'found':>10} {'compiles':>9}")
    for name in STEPS:
        path = arguments.shared / "oracle" / "gpu" / name / "input.hlo.gz"
        judge = Judge(Program.read(str(path)), compiler, TARGET, (), TIMEOUT)
        journal = Journal(str(arguments.results), judge, version_of(compiler.plugin))
        everything = list(_judged(_combinations(), judge, journal, arguments.jobs))
        search = Search(SPACE, partial(map, journal.known.__getitem__))
        found = search.run()
        best = min(_seconds(each) for each in everything)
        default = _seconds(journal.known[()])
        count = len(search.judged)
        missed += _seconds(found) > MOST_ABOVE * best or count > len(everything) // 2
        times = (f"{1e3 * each:7.2f} ms" for each in (default, best, _seconds(found)))
        print(f"{name:32} {' '.join(times)} {count:9}", flush=True)
    return 1 if missed else 0


def _combinations() -> list[Choice]:
    choices = []
    for on in product((False, True), repeat=len(SPACE)):
        pairs = zip(SPACE.items(), on, strict=True)
        choices.append(tuple(sorted((name, each[0]) for (name, each), is_on in pairs if is_on)))
    return choices


def _judged(
    choices: Sequence[Choice], judge: Judge, journal: Journal, jobs: int
) -> Iterator[Judged]:
    new = [choice for choice in choices if choice not in journal.known]
    for judged in in_processes(judge, new, jobs, _lost):
        journal.add(judged)
    return (journal.known[choice] for choice in choices)


def _lost(choice: Choice) -> Judged:
    return Judged(choice, error="its process was ended")


def _seconds(judged: Judged) -> float:
    return float("inf") if judged.seconds is None else judged.seconds


if __name__ == "__main__":
    sys.exit(main())
