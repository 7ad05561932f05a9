#!/usr/bin/env python3
"""Run our passes on what XLA:GPU gives its own, on the corpus of XLA's tests; renew the page of it.

    tools/pass_agreement.py --shared DIR --ask PYTHON [--seed S] [--count N] [--save DIR] [--again]
    tools/pass_agreement.py --shared DIR --seed S --show N

Each module of corpus/ is compiled by the compiler that PYTHON has (oracle/XLA_GPU.md); no GPU is
needed. For every run of a pass that is one of ours, ours gets the program that XLA's was given, and
the results are compared as by `hloopt xla compare`. The table, and what stands behind the
differences (pass_agreement_lib/causes.yaml, kept by hand), go into docs/xla_passes.md.

The compiler's answers are kept in DIR/answers, whatever our sources are. Verdicts are kept in
DIR/seed-S.jsonl: a sweep that was killed goes on where it was, unless the sources changed. Texts
of findings are written beside. Exits 1 if any difference has no cause, 2 for wrong usage. Linux.
"""

from __future__ import annotations

import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from document_tables import DOCUMENTS, renew_tables
from pass_agreement_lib.places import TARGET
from pass_agreement_lib.report import page, read_causes, unexplained
from pass_agreement_lib.subject import Modules
from sweep_lib.compiled import compiled_parser, run_compiled
from sweep_lib.sweep import Sweep

PAGE = DOCUMENTS / "xla_passes.md"


def main() -> int:
    """Compare as many modules as the command line says; the exit code."""
    parser = compiled_parser("Our passes beside XLA:GPU's on the corpus.", 400, "pass-agreement")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to renew")
    arguments = parser.parse_args()
    shared, python = arguments.shared or Path(), arguments.ask or ""
    modules = Modules(arguments.seed, shared, python, arguments.save)
    arguments.count = min(arguments.count, len(modules.paths) or arguments.count)

    def report(sweep: Sweep, outcomes: Counter[str]) -> int:
        causes = read_causes()
        about = {
            "compared": (
                f"{sweep.state.total.done:,} of {len(modules.paths):,} modules, seed "
                f"{arguments.seed}: {outcomes['compiled']:,} compiled as a whole, "
                f"{outcomes['failed behind passes']:,} by some passes, "
                f"{outcomes['not read by XLA']:,} not read by XLA"
            ),
            "XLA": f"XLA:GPU of jax-cuda13-pjrt {version_of(python)}, for {TARGET}",
            "ours": f"hloopt {version('hloopt')}",
        }
        parts = page(sweep.state, causes, about)
        renew_tables(arguments.page, parts)
        print(sweep.summary(parts["totals"]))
        wrong = unexplained(sweep.state, causes)
        for case in wrong:
            print(f"not explained: {case.text}")
        return int(bool(wrong))

    return run_compiled(parser, arguments, modules, report)


def version_of(python: str) -> str:
    """The version of the compiler that an interpreter has."""
    import subprocess

    code = "from importlib.metadata import version; print(version('jax-cuda13-pjrt'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
