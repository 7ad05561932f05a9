#!/usr/bin/env python3
"""Search schedules of recorded modules, and compare them with those of XLA:GPU.

    tools/search_table.py --shared DIR [--module TEXT] [--budget 60s] [--objective exposed]
                          [--seed N] [--write]

Both schedules have XLA's costs of the module, the overlap limits of XLA:GPU's default setting and
the memory that XLA's schedule needs. Prints a table; with --write it replaces the one in
docs/schedule_search.md. Exits 1 if a schedule is worse than XLA's or the bar is not met, 2 for
wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from math import exp, log
from pathlib import Path

from document_tables import DOCUMENTS, renew_tables
from hloopt.pass_framework.options import parse_seconds
from hloopt.reports.console.units import human_bytes
from hloopt.scheduling.search_options import SearchOptions
from schedule_lib.search import Figures, SearchResult, search_recorded

_DOCUMENT = DOCUMENTS / "schedule_search.md"
_BAR = 0.7
_LEAST_RATIO = 0.1
"""The floor of ratios in the geometric mean: one 0 would make it 0."""
_HEAD = (
    "module",
    "instructions",
    "exposed µs",
    "ratio",
    "host µs",
    "total µs",
    "peak",
    "allocated",
    "tried",
    "processor s",
)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if something is worse than XLA's or the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--module", default="", help="only modules whose name contains this")
    parser.add_argument("--budget", default="60s", help="time per module")
    parser.add_argument("--objective", default="exposed", choices=("makespan", "exposed"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="renew the table of the document")
    options = parser.parse_args(arguments)
    folder = options.shared / "oracle" / "gpu"
    if not folder.is_dir():
        parser.error(f"no folder {folder}")
    budget = parse_seconds(options.budget)
    if budget is None:
        parser.error(f"--budget takes a time such as 60s, not {options.budget}")
    search = SearchOptions(budget=budget, objective=options.objective, seed=options.seed)
    load, results = os.getloadavg()[0], []
    for sweep in sorted(folder.glob("*/sweep")):
        if options.module in sweep.parent.name:
            results.append(search_recorded(sweep, search))
            print(*_cells(results[-1]), file=sys.stderr, flush=True)
    if not results:
        parser.error(f"no module has '{options.module}' in its name")
    lines = [*_table(results), "", *_summary(results), _conditions(options, load)]
    print("\n".join(lines))
    if options.write:
        renew_tables(_DOCUMENT, {"modules": "\n".join(lines)})
    return 0 if all(r.is_no_worse for r in results) and _mean(results) <= _BAR else 1


def _table(results: Sequence[SearchResult]) -> list[str]:
    rows = [_HEAD, ("---", *["---:"] * (len(_HEAD) - 1)), *map(_cells, results)]
    return [f"| {' | '.join(row)} |" for row in rows]


def _cells(result: SearchResult) -> tuple[str, ...]:
    xla, ours = result.xla, result.ours
    return (
        result.module,
        f"{result.instructions:,}",
        f"{_six_digits(xla.exposed)} → {_six_digits(ours.exposed)}",
        f"{result.ratio:.3f}",
        f"{_six_digits(xla.host)} → {_six_digits(ours.host)}" if xla.host or ours.host else "",
        f"{_six_digits(xla.total)} → {_six_digits(ours.total)}",
        f"{human_bytes(xla.peak)} → {human_bytes(ours.peak)}",
        f"{human_bytes(xla.allocated_peak)} → {human_bytes(ours.allocated_peak)}",
        f"{result.tried:,}",
        f"{result.seconds:.1f}",
    )


def _six_digits(number: float) -> str:
    """As many as XLA prints."""
    return f"{float(f'{number:.6g}'):,}"


def _summary(results: Sequence[SearchResult]) -> list[str]:
    worse = [r.module for r in results if not r.is_no_worse]
    theirs = sum(r.xla.exposed for r in results)
    ours = sum(r.ours.exposed for r in results)
    host = " → ".join(f"{sum(f.host for f in figures):,.1f}" for figures in _both(results))
    most = min(results, key=lambda r: r.ratio)
    others = [r for r in results if r is not most]
    without = f", {1 - _mean(others):.1%} without {most.module}" if others else ""
    return [
        f"Exposed time is {1 - _mean(results):.1%} lower in the geometric mean of the ratios, each "
        f"taken as {_LEAST_RATIO:g} at least (wanted: {1 - _BAR:.0%}){without}. In the sum it is "
        f"{1 - ours / theirs:.1%} lower: {theirs:,.1f} → {ours:,.1f} µs. Waiting for copies to and "
        f"from the host: {host} µs.",
        "Worse than XLA in exposed time, total time, peak or allocated: "
        f"{', '.join(worse) or 'none'}.",
    ]


def _both(results: Sequence[SearchResult]) -> tuple[list[Figures], list[Figures]]:
    return [r.xla for r in results], [r.ours for r in results]


def _conditions(options: argparse.Namespace, load: float) -> str:
    return (
        f"Objective `{options.objective}`, budget {options.budget} per module, seed "
        f"{options.seed}, on a machine with {os.cpu_count()} processors and a load of {load:.1f} "
        "before the search's own."
    )


def _mean(results: Sequence[SearchResult]) -> float:
    """The geometric mean of the ratios."""
    return exp(sum(log(max(r.ratio, _LEAST_RATIO)) for r in results) / len(results))


if __name__ == "__main__":
    sys.exit(main())
