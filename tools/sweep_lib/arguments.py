"""The options that all sweeps have, and the sweep they ask for."""

from __future__ import annotations

import argparse
from pathlib import Path

from sweep_lib.state import State
from sweep_lib.sweep import Sweep
from sweep_lib.workers import Subject


def sweep_parser(description: str, unit: str, count: int, folder: str) -> argparse.ArgumentParser:
    """A parser of `--seed`, `--count`, `--save` and `--again`.

    `unit`: the name of the inputs, in the plural; `count` of them by default; findings go to
    build/`folder`.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=0, help=f"another seed, other {unit}")
    parser.add_argument("--count", type=int, default=count, help=f"how many {unit}")
    parser.add_argument(
        "--save", type=Path, default=Path("build", folder), help="folder for findings"
    )
    parser.add_argument("--again", action="store_true", help="forget what is done")
    return parser


def sweep_of(
    subject: Subject, arguments: argparse.Namespace, unit: str, settings: str | None = None
) -> Sweep:
    """The sweep of a subject, which goes on where one with equal `settings` was; by default the
    seed alone counts."""
    path = arguments.save / f"seed-{arguments.seed}.jsonl"
    if arguments.again:
        path.unlink(missing_ok=True)
    state = State(path, settings or f"seed {arguments.seed}")
    return Sweep(subject, state, folder=arguments.save, seed=arguments.seed, unit=unit)
