#!/usr/bin/env python3
"""Run single passes on programs made for them, ours and XLA's, and compare whole graphs.

    tools/pass_answers.py --shared DIR --ask PYTHON [--passes A,B] [--seed S] [--count N] …
    tools/pass_answers.py --passes A --seed S --show N

For passes of which there are no recorded pairs, a generator makes programs that have what the pass
looks for, and what it refuses. PYTHON is an interpreter with XLA:GPU's compiler
(oracle/XLA_GPU.md); no GPU is needed. Passes that XLA:GPU does not run, or not so, are asked of
XLA:CPU (oracle/XLA_CPU.md). It runs the pass alone, ours gets what it was given, and the results
have to be the same graph, leftovers that nothing reads aside; or to compute the same, as far as
they can be run, and to differ for one of the causes that pass_answers_lib has. With all passes, the
table in docs/xla_passes.md is renewed (--page).

Verdicts are kept in DIR/PASS/seed-S.jsonl: a sweep that was killed goes on where it was, unless the
sources changed. Exits 1 if any program differs without a cause, 2 for wrong usage. Needs Linux.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from document_tables import DOCUMENTS, renew_tables
from pass_answers_lib.generated import GENERATED
from pass_answers_lib.report import causes_of, row, table
from pass_answers_lib.subject import DIED, EQUAL, EXPLAINED, Programs
from sweep_lib.compiled import compiled_parser, run_compiled
from sweep_lib.sweep import Sweep


def main() -> int:
    """Examine as many programs of each pass as the command line says; the exit code."""
    parser = compiled_parser("Passes on programs made for them.", 200, "pass-answers")
    parser.add_argument("--passes", default=",".join(GENERATED), help="by XLA's names")
    parser.add_argument("--page", type=Path, default=DOCUMENTS / "xla_passes.md", help="to renew")
    arguments = parser.parse_args()
    names = arguments.passes.split(",")
    if unknown := ", ".join(sorted({*names} - {*GENERATED})):
        parser.error(f"no programs for {unknown}; there are some for {', '.join(GENERATED)}")
    folder, found = arguments.save, {}
    worst = 0

    for name in names:

        def report(sweep: Sweep, outcomes: Counter[str], name: str = name) -> int:
            found[name] = outcomes
            print(sweep.summary(row(name, outcomes)))
            settled = sum(outcomes[each] for each in (EQUAL, EXPLAINED, DIED))
            return int(settled < sweep.state.total.done)

        programs = Programs(
            arguments.seed, arguments.shared or Path(), arguments.ask or "", pass_name=name
        )
        arguments.save = folder / name
        worst = max(worst, run_compiled(parser, arguments, programs, report))
    if {*found} == {*GENERATED}:
        renew_tables(arguments.page, {"generated": table(found), "causes": causes_of(found)})
    return worst


if __name__ == "__main__":
    sys.exit(main())
