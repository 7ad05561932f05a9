#!/usr/bin/env python3
"""Compare what modules of the corpus cost with what XLA's HloCostAnalysis says.

    tools/cost_agreement.py --shared DIR [--filter RE] [--every N] [--jobs 2]

Compares flops, transcendentals and bytes accessed of every module XLA reads. Ends with
`N agree, M differ, K not comparable`; those that known_costs.yaml explains are told apart.
Exits 1 if fewer than 99 % agree or a difference is not explained, 2 for wrong usage. Needs jaxlib.

XLA sums in 32-bit floats: a difference that rounding once per instruction explains is none.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from corpus import CorpusEntry, add_choice, chosen_entries
from hloopt.analysis.cost import CostAnalysis
from hloopt.diagnostics import HloError
from hloopt.text import parse_module
from xla_process import XlaProcess

LEAST_AGREEING = 0.99
_ROUNDING = 2.0**-24
_MOST_CONSTANT_ELEMENTS = 20_000_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one module."""

    id: str
    status: str
    """"agree", "differ" or "not comparable"."""
    reason: str = ""


class Judge:
    """Judges modules one by one. Raises ImportError where there is no jaxlib."""

    def __init__(self) -> None:
        self._xla = XlaProcess()

    def judge(self, id: str, text: str) -> Verdict:
        answer = self._xla.read(text, cost=True)
        if answer.cost is None:
            return Verdict(id, "not comparable", answer.error or "")
        try:
            module = parse_module(text)
            cost = CostAnalysis(module, as_xla=True).module()
        except HloError as error:
            return Verdict(id, "differ", error.message)
        except Exception as error:  # a bug of ours is a finding, not the end of the sweep
            return Verdict(id, "differ", f"{type(error).__name__}: {error}")
        ours = {
            "flops": cost.flops,
            "transcendentals": cost.transcendentals,
            "bytes accessed": cost.bytes_accessed,
        }
        tolerance = module.instruction_count() * _ROUNDING
        wrong = [
            f"{name} {value}, XLA has {answer.cost.get(name, 0.0):.0f}"
            for name, value in ours.items()
            if abs(value - answer.cost.get(name, 0.0)) > tolerance * abs(value)
        ]
        return Verdict(id, "differ" if wrong else "agree", "; ".join(wrong))

    def close(self) -> None:
        self._xla.close()


def known_costs() -> dict[str, str]:
    """The reason why modules differ, by id: what known_costs.yaml says."""
    path = Path(__file__).with_name("known_costs.yaml")
    reasons: dict[str, list[str]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {id: reason for reason, ids in reasons.items() for id in ids}


_judge: Judge


def _start_worker() -> None:
    global _judge
    _judge = Judge()


def _judge_in_worker(entry: CorpusEntry) -> Verdict:
    if entry.facts.get("huge_constants", 0) > _MOST_CONSTANT_ELEMENTS:
        return Verdict(entry.id, "not comparable", "XLA makes up values for minutes")
    return _judge.judge(entry.id, entry.text())


def sweep(entries: Iterable[CorpusEntry], jobs: int) -> Iterator[Verdict]:
    """Judge all entries, in their order, in `jobs` processes. Raises ImportError without XLA."""
    XlaProcess().close()  # a worker that cannot start is a broken pool
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _start_worker) as pool:
        yield from pool.map(_judge_in_worker, entries, chunksize=16)


def main() -> int:
    """Sweep over the modules the command line names; the exit code."""
    arguments = _arguments()
    counts: Counter[str] = Counter()
    known = known_costs()
    explained: Counter[str] = Counter()
    try:
        for verdict in sweep(chosen_entries(arguments), arguments.jobs):
            counts[verdict.status] += 1
            is_known = verdict.status == "differ" and verdict.id in known
            if is_known:
                explained[known[verdict.id]] += 1
            if arguments.verbose or (verdict.status == "differ" and not is_known):
                print(f"{verdict.status} {verdict.id}: {verdict.reason}", flush=True)
    except (HloError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for reason, number in explained.most_common():
        print(f"{number} known: {reason}")
    statuses = ("agree", "differ", "not comparable")
    print(", ".join(f"{counts[status]} {status}" for status in statuses))
    is_enough = counts["agree"] >= LEAST_AGREEING * (counts["agree"] + counts["differ"])
    return 0 if is_enough and counts["differ"] == explained.total() else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare cost analyses with XLA's.")
    add_choice(parser)
    parser.set_defaults(max_instructions=sys.maxsize)
    parser.add_argument("--jobs", type=int, default=2, help="modules at a time")
    parser.add_argument("--verbose", action="store_true", help="a line for every module")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
