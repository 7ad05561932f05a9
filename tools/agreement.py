#!/usr/bin/env python3
"""Run the corpus with our interpreter and on real XLA:CPU, and compare the outputs.

    tools/agreement.py --shared DIR [--filter RE] [--every N] [--sample N] [--seeds 3] [--cache DIR]

Takes every module XLA reads with at most 200 instructions and 10 million elements, on all the
devices it is for. Ends with `N agree, M differ, L not ours, K not runnable`: not ours are those XLA
runs and the interpreter does not. Why a module differs is recognized from the module and the values
of its run (`agreement_lib`), and counted by kind. Verdicts are kept in --state: a sweep that was
killed goes on where it was, unless the sources changed. Exits 1 if fewer than 98.5 % of what XLA
runs agree, or a difference is not recognized, 2 for wrong usage. Needs jaxlib, here or in the
Python that $HLO_ORACLE_PYTHON names.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from agreement_lib.answers import Answers
from agreement_lib.judge import Judge, Settings
from agreement_lib.verdict import Verdict
from corpus import CorpusEntry, add_choice, chosen_entries
from hloopt.diagnostics import HloError
from sweep_lib.sweep import show_progress

LEAST_AGREEING = 0.985
"""The share of what XLA runs that has to agree."""
_judge: Judge


def _start_worker(settings: Settings) -> None:
    global _judge
    _judge = Judge(settings)


def _judge_in_worker(entry: CorpusEntry) -> Verdict:
    return _judge.judge(entry.id, entry.text())


def sweep(entries: Iterable[CorpusEntry], settings: Settings, jobs: int) -> Iterator[Verdict]:
    """Judge all entries, in their order, in `jobs` processes. Raises ImportError without XLA."""
    if not (settings.oracle / "xla_oracle.py").is_file():
        raise ImportError(f"no xla_oracle.py in {settings.oracle}")
    with ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), _start_worker, (settings,)
    ) as pool:
        yield from pool.map(_judge_in_worker, entries)


def main() -> int:
    """Sweep over the modules the command line names; the exit code."""
    arguments = _arguments()
    settings = Settings(
        oracle=(arguments.shared / "oracle").resolve(),
        seeds=arguments.seeds,
        timeout=arguments.timeout,
        cache=arguments.cache,
    )
    if arguments.cache:
        arguments.cache.mkdir(parents=True, exist_ok=True)
    try:
        entries = chosen_entries(arguments)
        if arguments.sample is not None and arguments.sample < len(entries):
            entries = random.Random(arguments.seed).sample(entries, arguments.sample)
        answers = Answers(arguments.state, f"{settings.seeds} seeds, {settings.timeout} s")
        missing = [entry for entry in entries if entry.id not in answers.verdicts]
        started = time.monotonic()
        for done, verdict in enumerate(sweep(missing, settings, arguments.jobs), 1):
            answers.add(verdict)
            rate = done / (time.monotonic() - started)
            show_progress(len(entries) - len(missing) + done, len(entries), rate)
            _show(verdict, verbose=arguments.verbose)
    except (HloError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    seconds = time.monotonic() - started
    print(
        f"{len(entries):,} modules, {len(missing):,} of them now in {seconds:.0f} s, "
        f"{len(missing) / max(seconds, 1e-9):.1f} a second"
    )
    return _summarize([answers.verdicts[entry.id] for entry in entries])


def _show(verdict: Verdict, *, verbose: bool) -> None:
    """A line for a verdict that nothing explains, or for each."""
    if verbose or (verdict.status in ("differ", "not ours") and not verdict.kind):
        times = f" ({verdict.ours:.4f} s, XLA {verdict.xla:.4f} s)" if verdict.ours else ""
        reason = " ".join(verdict.reason.split())[:300]
        kind = f" [{verdict.kind}]" if verdict.kind else ""
        print(f"{verdict.status}{kind} {verdict.id}{times}: {reason}", flush=True)


def _summarize(verdicts: Sequence[Verdict]) -> int:
    """Print the counts; the exit code."""
    counts = Counter(verdict.status for verdict in verdicts)
    for (count, status), number in sorted(Counter((v.devices, v.status) for v in verdicts).items()):
        if count > 1:
            print(f"{count} devices: {number} {status}")
    wrong = [verdict for verdict in verdicts if verdict.status in ("differ", "not ours")]
    kinds = Counter(verdict.kind for verdict in wrong if verdict.kind)
    for reason, number in kinds.most_common():
        print(f"{number} recognized: {reason}")
    unexplained = len(wrong) - kinds.total()
    ran = counts["agree"] + len(wrong)
    statuses = ("agree", "differ", "not ours", "not runnable")
    print(", ".join(f"{counts[status]} {status}" for status in statuses))
    print(
        f"of {ran} that XLA runs, {share(counts['agree'], ran)} agree, {kinds.total()} differ for "
        f"a recognized reason, {unexplained} for none"
    )
    is_enough = counts["agree"] >= LEAST_AGREEING * ran
    return 0 if is_enough and not unexplained else 1


def share(part: int, whole: int) -> str:
    """In per cent."""
    return f"{100 * part / whole:.2f} %" if whole else "none"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare our interpreter with real XLA:CPU.")
    add_choice(parser)
    parser.add_argument("--sample", type=int, metavar="N", help="only N modules, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of --sample")
    parser.add_argument("--jobs", type=int, default=2, help="modules at a time")
    parser.add_argument("--seeds", type=int, default=3, help="inputs to run each module on")
    parser.add_argument("--timeout", type=float, default=15, help="seconds for one run on XLA")
    parser.add_argument("--cache", type=Path, help="keep XLA's answers in this folder")
    parser.add_argument(
        "--state", type=Path, default=Path("build/agreement.jsonl"), help="keep verdicts here"
    )
    parser.add_argument("--verbose", action="store_true", help="a line for every module")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
