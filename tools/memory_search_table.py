#!/usr/bin/env python3
"""Make recorded training steps fit in three quarters of their memory, by memory-search.

    tools/memory_search_table.py --shared DIR [--module TEXT] [--most N] [--iterations N]
                                 [--seed N] [--jobs N] [--write]

Taken are the steps of oracle/gpu, as XLA:GPU scheduled them, whose temporaries are half of their
memory or more. Beside each stands what XLA's rematerialization alone makes of it at the same
limit, and the time that memory-search adds with no more memory than that. Prints the table; with
--write it replaces that in docs/overlap.md. Exits 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from document_tables import DOCUMENTS, renew_tables
from hloopt.diagnostics import PassRefused, counted
from hloopt.files import load
from hloopt.ir import Module
from hloopt.ir.clone import clone_module
from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.overlap.judging import Figures, Judge
from hloopt.passes.overlap.memory_search import least_memory
from hloopt.passes.overlap.options import MemorySearchOptions
from hloopt.passes.overlap.outcomes import given_program

_DOCUMENT = DOCUMENTS / "overlap.md"
_TARGET = "h100_sxm"
_PART = 0.75
"""The part of its memory that a step is given."""
_LEAST_TEMPORARIES = 0.5
_CHEAP = 1.03
"""The time beside that of the given step within which a step is to fit."""
_HEAD = (
    *("step", "GiB", "least", "ms", "added", "decisions", "rematerialization alone"),
    *("with as much", "processor s"),
)
_BLOCK = 8
"""Instructions in a row that the baseline recomputes together, as XLA:GPU does at most."""


@dataclass(frozen=True, slots=True)
class Row:
    """One training step."""

    name: str
    limit: int
    floor: int
    """A lower bound of what it needs, unless instructions are replaced."""
    given: Figures
    found: Figures | None
    """None where nothing was found that fits."""
    decisions: int
    alone: Figures | None
    """With XLA's rematerialization alone; None where it refuses."""
    beside: Figures | None
    """By memory-search with as much memory as that needs, and not less than the limit."""
    seconds: float
    """Of the processor, for the search within the limit."""

    @property
    def is_cheap(self) -> bool:
        """Whether it fits with little more time."""
        return self.found is not None and self.found.seconds <= _CHEAP * self.given.seconds

    @property
    def is_ahead(self) -> bool:
        """Whether a step takes less time than with rematerialization alone."""
        if self.beside is None:
            return False
        return self.alone is None or self.beside.seconds < self.alone.seconds


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--module", default="", help="only steps whose name contains this")
    parser.add_argument(
        "--most", type=int, help="only steps whose entry has that many instructions at most"
    )
    parser.add_argument("--iterations", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="renew the table of the document")
    options = parser.parse_args(arguments)
    rows = list(_rows(options))
    if not rows:
        parser.error(f"no step has '{options.module}' in its name and enough temporaries")
    heads = ("| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |",)
    lines = [_line(_HEAD), *heads, *(_line(_cells(row)) for row in rows), "", _summary(rows)]
    most = f", entries of at most {options.most:,} instructions" if options.most is not None else ""
    lines.append(
        f"{counted(options.iterations, 'iteration')}, seed {options.seed}{most}; `make "
        "memory-search-table` makes this table."
    )
    text = "\n".join(lines)
    print(text)
    if options.write:
        renew_tables(_DOCUMENT, {"memory": text})
    return 0


def _rows(options: argparse.Namespace) -> Iterator[Row]:
    for folder in sorted((options.shared / "oracle" / "gpu").iterdir()):
        path = folder / "default" / "after_lhs.hlo.gz"
        if options.module not in folder.name or not path.exists():
            continue
        module = load(str(path))
        if options.most is not None and len(module.entry) > options.most:
            continue
        statistics = analyze_memory(module, backend=GPU).statistics
        if statistics.device.temp < _LEAST_TEMPORARIES * statistics.total_allocation_bytes:
            continue
        row = _made(folder.name, module, options)
        print(*_cells(row), file=sys.stderr, flush=True)
        yield row


def _made(name: str, module: Module, options: argparse.Namespace) -> Row:
    judge = Judge(MemorySearchOptions(target=_TARGET))
    given = judge.figures(module)
    limit = int(given.allocated * _PART)
    begin = process_time()
    found, decisions = _searched(module, limit, judge, options)
    seconds = process_time() - begin
    alone = _rematerialized(module, limit, judge)
    beside = found
    if alone is not None and (found is None or found.seconds >= alone.seconds):
        if alone.allocated >= given.allocated:
            beside = given
        elif alone.allocated > limit:
            beside = _searched(module, alone.allocated, judge, options)[0] or found
    floor = least_memory(given_program(module, judge).draft).size
    return Row(name, limit, floor, given, found, decisions, alone, beside, seconds)


def _searched(
    module: Module, limit: int, judge: Judge, options: argparse.Namespace
) -> tuple[Figures | None, int]:
    """The step that memory-search makes fit, and the number of its decisions."""
    result, _ = clone_module(module)
    settings = {
        "target": _TARGET,
        "memory_limit": limit,
        "iterations": options.iterations,
        "seed": options.seed,
        "jobs": options.jobs,
    }
    context = PassContext("memory-search")
    fits = create_pass("memory-search", settings).run(result, context)
    made = sum(n for what, n in context.statistics.items() if what.startswith("decisions to "))
    return (judge.figures(result) if fits else None), made


def _rematerialized(module: Module, limit: int, judge: Judge) -> Figures | None:
    alone, _ = clone_module(module)
    settings = {"recompute": True, "block_size_limit": _BLOCK, "memory_limit_bytes": limit}
    try:
        create_pass("rematerialization", settings).run(alone, PassContext(wants_remarks=False))
    except PassRefused:
        return None
    return judge.figures(alone)


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: Row) -> tuple[str, ...]:
    given, found, alone, beside = row.given, row.found, row.alone, row.beside
    after = f"more than {_gib(row.limit)}" if found is None else _gib(found.allocated)
    return (
        row.name,
        f"{_gib(given.allocated)} → {after}",
        _gib(row.floor),
        f"{_ms(given)} → {'-' if found is None else _ms(found)}",
        "-" if found is None else _added(found, given),
        f"{row.decisions}",
        "refuses" if alone is None else f"{_gib(alone.allocated)} GiB, {_added(alone, given)}",
        "-" if beside is None else _added(beside, given),
        f"{row.seconds:.0f}",
    )


def _gib(size: int) -> str:
    return f"{size / 2**30:,.2f}"


def _ms(figures: Figures) -> str:
    return f"{figures.seconds * 1e3:,.2f}"


def _added(figures: Figures, given: Figures) -> str:
    return f"{figures.seconds / given.seconds - 1:+.1%}"


def _summary(rows: list[Row]) -> str:
    """The bars of memory-search, in sentences."""
    fitting = [row for row in rows if row.found is not None]
    cheap = [row for row in rows if row.is_cheap]
    ahead = [row for row in rows if row.is_ahead]
    impossible = [row for row in rows if row.floor > row.limit]
    return (
        f"Of {counted(len(rows), 'step')} {len(fitting)} fit in {_PART:.0%} of their memory, "
        f"{len(cheap)} of these with at most {_CHEAP - 1:.0%} more time (wanted: three quarters); "
        f"{len(impossible)} cannot, unless instructions are replaced. With no more memory than "
        f"with rematerialization alone {len(ahead)} take less time than with it (wanted: 80%)."
    )


if __name__ == "__main__":
    raise SystemExit(main())
