#!/usr/bin/env python3
"""Make recorded training steps shorter by overlap-search, and let XLA:GPU judge them.

    tools/overlap_table.py --shared DIR --ask PYTHON [--module TEXT] [--iterations N]
                           [--seed N] [--write]

Each step is taken as XLA:GPU scheduled it with default flags. XLA schedules it and the result anew,
made to keep the order, and reports the time and what it allocates. The last is the better of its
own step and the one that it makes with flags that pipeline all collectives.
Prints a table; with --write it replaces the one in docs/overlap.md. Exits 1 if a step is longer
than with default flags, by XLA's report or the second model, or allocates more pages; 2 for wrong
usage.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from document_tables import DOCUMENTS, renew_tables
from hloopt.files import load
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from oracle_script import check_gpu_compiler
from overlap_lib.steps import TARGET, Step, forced, recorded

_DOCUMENT = DOCUMENTS / "overlap.md"
_PAGE = 2 << 20
"""Bytes of a page of device memory."""
_LEAST_EXPOSED = 0.02
"""The share of a step that is waiting from which on the step counts in the means."""
_LEAST_RATIO = 0.1
_HEAD = (
    *("step", "ms", "ratio", "best flags", "ratio", "exposed ms", "second model ms"),
    *("MiB", "decisions", "tried", "s"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One training step."""

    name: str
    default: Step
    best: Step
    ours: Step
    decisions: int
    tried: int
    seconds: float

    @property
    def is_no_worse(self) -> bool:
        """Whether no model finds the step longer, and no page more is allocated."""
        ours, theirs = self.ours, self.default
        rounding = 1 + 1e-5  # XLA prints six digits
        return (
            ours.total <= theirs.total * rounding
            and ours.smooth <= theirs.smooth * rounding
            and -(-ours.allocated // _PAGE) <= -(-theirs.allocated // _PAGE)
        )

    @property
    def waits(self) -> bool:
        """Whether enough of XLA's step is waiting for the step to count."""
        return self.default.exposed >= _LEAST_EXPOSED * self.default.total


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a step is worse than XLA's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--ask", required=True, help="an interpreter that has XLA:GPU")
    parser.add_argument("--module", default="", help="only steps whose name contains this")
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="renew the table of the document")
    options = parser.parse_args(arguments)
    check_gpu_compiler(options.shared, options.ask)
    rows = []
    for folder in sorted((options.shared / "oracle" / "gpu").iterdir()):
        if options.module in folder.name and (folder / "default" / "after_lhs.hlo.gz").exists():
            rows.append(_row(folder, options))
            print(*_cells(rows[-1]), file=sys.stderr, flush=True)
    if not rows:
        parser.error(f"no step has '{options.module}' in its name")
    lines = [
        *_table(rows),
        "",
        *_summary(rows),
        f"{options.iterations:,} iterations, seed "
        f"{options.seed}; `make overlap-table` makes this table.",
    ]
    print("\n".join(lines))
    if options.write:
        renew_tables(_DOCUMENT, {"steps": "\n".join(lines)})
    return 0 if all(row.is_no_worse for row in rows) else 1


def _row(folder: Path, options: argparse.Namespace) -> Row:
    module = load(str(folder / "default" / "after_lhs.hlo.gz"))
    shape = re.search(r"_(\d+)x(\d+)$", folder.name)
    devices = int(shape[1]) * int(shape[2]) if shape else 1
    compiler = options.shared, options.ask, devices
    default = forced(module, *compiler)
    context = PassContext(wants_remarks=False)
    search = {"target": TARGET, "iterations": options.iterations, "seed": options.seed}
    begin = time.process_time()
    is_changed = create_pass("overlap-search", search).run(module, context)
    seconds = time.process_time() - begin
    ours = forced(module, *compiler) if is_changed else default
    best = default
    if (folder / "pipelined").is_dir():
        best = min(default, recorded(folder / "pipelined"), key=lambda step: step.total)
    made = [n for what, n in context.statistics.items() if what.startswith("decisions to ")]
    return Row(
        folder.name,
        default,
        best,
        ours,
        sum(made),
        context.statistics["decisions tried"],
        seconds,
    )


def _table(rows: Sequence[Row]) -> list[str]:
    head = [_HEAD, ("---", *["---:"] * (len(_HEAD) - 1))]
    return [f"| {' | '.join(row)} |" for row in [*head, *map(_cells, rows)]]


def _cells(row: Row) -> tuple[str, ...]:
    default, best, ours = row.default, row.best, row.ours
    return (
        row.name,
        f"{_ms(default.total)} → {_ms(ours.total)}",
        f"{ours.total / default.total:.3f}",
        _ms(best.total),
        f"{ours.total / best.total:.3f}",
        f"{_ms(default.exposed)} → {_ms(ours.exposed)}",
        f"{_ms(default.smooth)} → {_ms(ours.smooth)}",
        f"{default.allocated / 2**20:,.1f} → {ours.allocated / 2**20:,.1f}",
        f"{row.decisions}",
        f"{row.tried}",
        f"{row.seconds:.1f}",
    )


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1e3:,.2f}"


def _summary(rows: Sequence[Row]) -> list[str]:
    waiting = [row for row in rows if row.waits]
    out = [row.name for row in rows if not row.waits]
    worse = [row.name for row in rows if not row.is_no_worse]
    lines = [f"Worse than XLA with default flags: {', '.join(worse) or 'none'}."]
    if waiting:
        theirs = sum(row.default.exposed for row in waiting)
        ours = sum(row.ours.exposed for row in waiting)
        floored = [max(row.ours.exposed / row.default.exposed, _LEAST_RATIO) for row in waiting]
        lines[:0] = [
            f"Steps are {_shorter(waiting, lambda row: row.default)} shorter than with default "
            f"flags, {_shorter(waiting, lambda row: row.best)} than with the best, in the "
            f"geometric mean of {len(waiting)} steps.",
            f"Exposed time is {1 - ours / theirs:.1%} lower in the sum and "
            f"{1 - _mean(floored):.1%} in the geometric mean of the ratios, each taken as "
            f"{_LEAST_RATIO:g} at least.",
        ]
    if out:
        lines.append(f"Left out, as less than {_LEAST_EXPOSED:.0%} is waiting: {', '.join(out)}.")
    return lines


def _shorter(rows: Sequence[Row], of: Callable[[Row], Step]) -> str:
    """By how much steps are shorter, and the range of that without any one of them."""
    ratios = [row.ours.total / of(row).total for row in rows]
    shorter = f"{1 - _mean(ratios):.1%}"
    if len(ratios) == 1:
        return shorter
    without = [_mean([*ratios[:n], *ratios[n + 1 :]]) for n in range(len(ratios))]
    return f"{shorter} ({1 - max(without):.1%} to {1 - min(without):.1%} without one of them)"


def _mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))


if __name__ == "__main__":
    raise SystemExit(main())
