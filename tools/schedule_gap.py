#!/usr/bin/env python3
"""Search schedules of random programs, and have a solver prove how far they are from the best ones.

    tools/schedule_gap.py [--seed S] [--count N] [--iterations N] [--seconds N] [--save DIR]
                          [--write]

Programs are those of the comparison with XLA:GPU's scheduler; of each the largest computation of 20
to 60 instructions that waits is searched, then solved. Results are kept in DIR, and what is there
is not done again. Prints a table; with --write it replaces the one in docs/schedule_search.md.
Exits 1 where a bar is missed, 2 for wrong usage. Needs OR-Tools, the extra `solver`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from document_tables import DOCUMENTS, renew_tables
from hloopt.diagnostics import HloError
from hloopt.scheduling.search.exact.solve import require_solver
from schedule_lib.gap import Gap, gap_of

_DOCUMENT = DOCUMENTS / "schedule_search.md"
_PROVED = 0.75
"""The share of computations to be proved."""
_NEAR, _NEAR_SHARE = 0.03, 0.95
"""The gap within which searched orders are to be, and the share of them."""
_CLASSES = ((20, 29), (30, 39), (40, 49), (50, 60))
"""Numbers of instructions."""
_HEAD = (
    "instructions",
    "computations",
    "operations",
    "proved",
    "median s",
    "longest s",
    "rules: gap",
    "search: gap",
    "within 3 %",
    "optimal",
    "largest gap",
)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other programs")
    parser.add_argument("--count", type=int, default=200, help="how many computations")
    parser.add_argument("--iterations", type=int, default=20_000, help="of the search")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the solver")
    parser.add_argument("--save", type=Path, default=Path("build", "schedule-gap"))
    parser.add_argument("--write", action="store_true", help="renew the table of the document")
    options = parser.parse_args(arguments)
    try:
        require_solver()
    except HloError as error:
        parser.error(f"{error.message}; {error.help}")
    found = _measured(options)
    lines = [*_table(found), "", *_summary(found), _conditions(options)]
    print("\n".join(lines))
    if options.write:
        renew_tables(_DOCUMENT, {"gap": "\n".join(lines)})
    return 0 if _holds(found) else 1


def _measured(options: argparse.Namespace) -> list[Gap]:
    """As many gaps as are wanted; those of programs that were examined before are read."""
    name = f"seed-{options.seed}.{options.iterations}.{options.seconds:g}s.jsonl"
    path: Path = options.save / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found: list[Gap] = []
    number = 0
    with path.open("a", encoding="utf-8") as file:
        while len(found) < options.count:
            if number < len(lines):
                known = json.loads(lines[number])
                gap = None if known is None else Gap(**known)
            else:
                gap = gap_of(options.seed, number, options.iterations, options.seconds)
                print(json.dumps(None if gap is None else asdict(gap)), file=file, flush=True)
                if gap is not None:
                    print(len(found) + 1, *_row([gap]), file=sys.stderr, flush=True)
            number += 1
            if gap is not None:
                found.append(gap)
    return found


def _table(found: Sequence[Gap]) -> list[str]:
    rows = [_HEAD, ("---:",) * len(_HEAD)]
    for least, most in _CLASSES:
        own = [gap for gap in found if least <= gap.instructions <= most]
        if own:
            rows.append((f"{least} to {most}", *_row(own)))
    rows.append(("all", *_row(found)))
    return [f"| {' | '.join(row)} |" for row in rows]


def _row(found: Sequence[Gap]) -> tuple[str, ...]:
    proved = [gap for gap in found if gap.is_proved]
    seconds = [gap.seconds for gap in found]
    return (
        f"{len(found):,}",
        f"{_mean([gap.operations for gap in found]):.1f}",
        f"{len(proved):,}",
        f"{median(seconds):.1f}",
        f"{max(seconds):.1f}",
        f"{_mean([gap.plain / gap.proved - 1 for gap in proved]):.1%}",
        f"{_mean([gap.gap for gap in proved]):.2%}",
        f"{sum(gap.gap <= _NEAR for gap in proved):,}",
        f"{sum(gap.searched == gap.proved for gap in proved):,}",
        f"{max((gap.gap for gap in proved), default=0.0):.1%}",
    )


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _summary(found: Sequence[Gap]) -> list[str]:
    proved = [gap for gap in found if gap.is_proved]
    near = sum(gap.gap <= _NEAR for gap in proved)
    known = sum(gap.plain == gap.proved for gap in proved)
    others = [gap.solved / gap.proved - 1 for gap in found if not gap.is_proved]
    rest = f"; of the others the best order is within {max(others):.0%} of the bound" * bool(others)
    return [
        f"{len(proved)} of {len(found)} are solved to a proof (wanted: {_PROVED:.0%}){rest}. The "
        f"search is within {_NEAR:.0%} of the bound in {near} of the {len(proved)}, "
        f"{near / max(len(proved), 1):.1%} (wanted: {_NEAR_SHARE:.0%}); {known} schedules of "
        "the rules are the best already. Each solved order keeps the scheduler's rules and the "
        "memory limit, and takes the same time in the simulator."
    ]


def _conditions(options: argparse.Namespace) -> str:
    return (
        f"Seed {options.seed}, {options.iterations:,} iterations of the search, up to "
        f"{options.seconds:g} s of the solver, which uses one of {os.cpu_count()} processors."
    )


def _holds(found: Sequence[Gap]) -> bool:
    proved = [gap for gap in found if gap.is_proved]
    near = sum(gap.gap <= _NEAR for gap in proved)
    return len(proved) >= _PROVED * len(found) and near >= _NEAR_SHARE * len(proved)


if __name__ == "__main__":
    sys.exit(main())
