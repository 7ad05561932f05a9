#!/usr/bin/env python3
"""Make recorded training steps shorter by overlap-search, and let XLA:GPU judge them.

    tools/overlap_table.py --shared DIR --ask PYTHON [--module TEXT] [--iterations N]
                           [--seed N] [--save DIR] [--again] [--done] [--write]

There are two tables. In `programs` a program comes to XLA's combiners by XLA's passes; decisions
are made there, and XLA's own passes finish it. In `steps` it is taken as XLA scheduled it, and
changed; XLA schedules both anew, made to keep the order. XLA reports the time and what it
allocates.

Prints the tables; with --write it replaces those in docs/overlap.md. Rows are kept in
DIR/rows.jsonl, whatever our sources are: a run that was ended goes on where it was, and --again
makes them anew. With --done no more are made. Exits 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from document_tables import DOCUMENTS, renew_tables
from oracle_script import check_gpu_compiler
from overlap_lib.compiler import Failed, XlaGpu
from overlap_lib.orders import reordered
from overlap_lib.programs import decided
from overlap_lib.record import Record
from overlap_lib.rows import Row, cells, summary, table

_DOCUMENT = DOCUMENTS / "overlap.md"
_TABLES = ("programs", "steps")


def main(arguments: list[str] | None = None) -> int:
    """Print the tables."""
    parser = _parser()
    options = parser.parse_args(arguments)
    check_gpu_compiler(options.shared, options.ask)
    if options.again:
        (options.save / "rows.jsonl").unlink(missing_ok=True)
    settings = f"{options.iterations} iterations, seed {options.seed}"
    record = Record(options.save / "rows.jsonl", settings)
    tables = {}
    for name in options.table or _TABLES:
        folders = _folders(options)
        rows = list(_rows(name, folders, options, record))
        if not rows:
            parser.error(f"no step has '{options.module}' in its name")
        lines = [*table(rows), "", *summary(rows)]
        missing = {folder.name for folder in folders} - {row.name for row in rows}
        if missing:
            lines.append(f"Not made: {', '.join(sorted(missing))}.")
        made = f"`make overlap-table COUNT={options.iterations}` makes this table"
        lines.append(f"{settings}; {made}.")
        tables[name] = "\n".join(lines)
        print(f"{tables[name]}\n")
    if options.write:
        renew_tables(_DOCUMENT, tables)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--ask", required=True, help="an interpreter that has XLA:GPU")
    parser.add_argument("--table", action="append", choices=_TABLES, help="this one only")
    parser.add_argument("--module", default="", help="only steps whose name contains this")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, default=Path("build", "overlap-table"))
    parser.add_argument("--again", action="store_true", help="forget the rows that are done")
    parser.add_argument("--done", action="store_true", help="only rows that are done")
    parser.add_argument("--write", action="store_true", help="renew the tables of the document")
    return parser


def _folders(options: argparse.Namespace) -> list[Path]:
    """The folders of the steps that are wanted, and have collectives."""
    return [
        folder
        for folder in sorted((options.shared / "oracle" / "gpu").iterdir())
        if options.module in folder.name
        and (folder / "default" / "before_async_creator_0.hlo.gz").exists()
    ]


def _rows(
    name: str, folders: Sequence[Path], options: argparse.Namespace, record: Record
) -> Iterator[Row]:
    """The rows of a table; those that are not known are made."""
    for folder in folders:
        row = record.known(name, folder.name)
        if row is None and not options.done:
            try:
                row = _made(name, folder, options)
            except Failed as error:
                print(f"{folder.name}: {error.message}", file=sys.stderr)
                continue
            record.add(name, row)
        if row is not None:
            print(name, *cells(row), file=sys.stderr, flush=True)
            yield row


def _made(name: str, folder: Path, options: argparse.Namespace) -> Row:
    shape = re.search(r"_(\d+)x(\d+)$", folder.name)
    devices = int(shape[1]) * int(shape[2]) if shape else 1
    gpu = XlaGpu(options.shared, options.ask, devices)
    if name == "steps":
        return reordered(folder, gpu, options.iterations, options.seed)
    return decided(
        folder.name, _source(folder, options.shared), gpu, options.iterations, options.seed
    )


def _source(folder: Path, shared: Path) -> str:
    """The program as it was given to XLA."""
    given = folder / "input.hlo.gz"
    if given.exists():
        return gzip.decompress(given.read_bytes()).decode()
    return (shared / "corpus" / "benchmarks" / f"{folder.name}.hlo").read_text(encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
