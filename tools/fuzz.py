#!/usr/bin/env python3
"""Break HLO texts, protos and pipelines at random and see that nothing breaks with them.

    tools/fuzz.py [--shared DIR] [--count N] [--jobs J] [--seed S] [--save DIR] [--kinds K,…]
    tools/fuzz.py --against-xla …

Starts from the texts of testdata/ and of DIR/corpus. Inputs are of four kinds:

text      a broken text is read, verified, printed, read again; a share goes through all passes
proto     the same of a proto with broken fields, which is encoded again, too
pipeline  a broken YAML pipeline, made up or shipped, is read and run on a valid module
command   a random command line on a broken or valid file; a few in processes of their own

An exception that is no HloError, more than 5 seconds (for each pass anew; 20 of a command or
pipeline; one more for each 5 MB of input) or 500 MB, an invalid module after a pass, an exit code
of a defect, and a print that is not read back as it is are findings. The first of each kind is made
smaller and saved in `--save`. Answers are kept there, too: a sweep that was killed goes on where it
was, unless the sources changed. Exits 1 if there are findings, 2 for wrong usage. Needs Linux.

With --against-xla, asks jaxlib whether it reads each text, and counts by message where the answers
differ. That is information, no finding.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from fuzz_lib.inputs import KINDS, Inputs
from sweep_lib.arguments import sweep_of, sweep_parser
from sweep_lib.sweep import show_progress

ROOT = Path(__file__).resolve().parent.parent
_PER_SLICE = 1000


def main() -> int:
    """Check as many inputs as the command line says; the exit code."""
    arguments = _arguments()
    folders = (ROOT / "testdata", *([arguments.shared / "corpus"] if arguments.shared else []))
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        print(f"error: no folder {', '.join(missing)}", file=sys.stderr)
        return 2
    kinds = tuple(arguments.kinds.split(","))
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        print(f"error: no kind '{unknown[0]}': {', '.join(KINDS)}", file=sys.stderr)
        return 2
    if arguments.against_xla:
        return _compare_with_xla(folders, arguments.seed, arguments.count)
    inputs = Inputs(folders, arguments.seed, thorough=arguments.thorough, kinds=kinds)
    sweep = sweep_of(inputs, arguments, "inputs", repr(inputs))
    sweep.run(arguments.count, arguments.jobs, _PER_SLICE)
    print(_commands(sweep.state.total.outcomes))
    print(sweep.summary(_counts(sweep.state.total.outcomes)))
    return 1 if sweep.state.kinds else 0


def _counts(outcomes: Counter[str]) -> str:
    """Counts of outcomes, by kind of input."""
    shown = []
    for kind in KINDS:
        ends = {o.removeprefix(f"{kind} "): n for o, n in outcomes.items() if o.startswith(kind)}
        if ends:
            parts = ", ".join(f"{number:,} {end}" for end, number in sorted(ends.items()))
            shown.append(f"{kind}s: {parts}")
    return "; ".join(shown)


def _commands(outcomes: Counter[str]) -> str:
    """Counts of runs, by command."""
    ran = {o.removeprefix("ran "): n for o, n in outcomes.items() if o.startswith("ran ")}
    return "commands: " + (", ".join(f"{n:,} {name}" for name, n in sorted(ran.items())) or "none")


def _compare_with_xla(folders: tuple[Path, ...], seed: int, count: int) -> int:
    from fuzz_lib.against_xla import compare

    try:
        classes = compare(folders, seed, range(count), show_progress)
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for (verdict, message), numbers in sorted(
        classes.items(), key=lambda item: (item[0][0], -len(item[1]))
    ):
        print(f"{len(numbers):6} {verdict}: {message} (texts {', '.join(map(str, numbers[:3]))})")
    return 0


def _arguments() -> argparse.Namespace:
    description = "Break HLO texts, protos and pipelines at random."
    parser = sweep_parser(description, "inputs", 20_000, "fuzz")
    parser.add_argument("--shared", type=Path, help="the folder of corpus/, for more texts")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of inputs; default: all")
    parser.add_argument(
        "--thorough", type=float, default=0.25, help="the share of texts to run all passes on"
    )
    parser.add_argument("--against-xla", action="store_true", help="compare with what jaxlib reads")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
