#!/usr/bin/env python3
"""Compare programs with what XLA's partitioner made of them, as `hloopt equivalent --global` does.

    tools/global_equivalence.py --shared DIR [--share N/M] [--seconds S]

The pairs of `oracle/spmd` that fit (no value of more than two million elements), have neither
randomness nor infeeds and leave no sums unreduced run on random inputs within S seconds (40) and
1 GiB. 98 % have to compute the same, or differ by a fault of docs/partitioner_faults.md. `--share
0/4` takes each fourth pair from the first on. Prints what is not the same, and counts; exits 1 if
the bar is not met, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path
from time import monotonic

from hloopt.diagnostics import HloError
from hloopt.equivalence import Reference, RunSettings
from hloopt.files import read_module
from hloopt.interpreter.limits import Deadline
from hloopt.ir import Module, Opcode

_LEAST = 0.98
_MOST_ELEMENTS = 1 << 21
_MEMORY = 1 << 30
_RANDOM = frozenset(
    (Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE, Opcode.RNG_BIT_GENERATOR, Opcode.INFEED)
)
"""Operations whose values are not those of the inputs."""
_EXPLAINED = {
    "Dot2DPartitionedNoncontractingAndContracting3.0": "a product on devices in another order",
    "IndexPassthroughScatterPartitionedIndexVectorDim.0": "a scatter whose index vectors are cut",
    "Fft3DC128.0": "a Fourier transform in double precision",
    "CustomCallWrap.0": "the test declares more elements than wrapping makes",
}
"""Differences that are the partitioner's or the test's: docs/partitioner_faults.md."""


def main(arguments: list[str] | None = None) -> int:
    """Print differences and counts; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--share", default="0/1", metavar="N/M", help="each Mth pair from N on")
    parser.add_argument("--seconds", type=float, default=40.0, metavar="S", help="for each pair")
    options = parser.parse_args(arguments)
    folder = options.shared / "oracle" / "spmd"
    first, _, step = options.share.partition("/")
    if not folder.is_dir() or not (first.isdecimal() and step.isdecimal() and int(step)):
        print(f"no folder {folder}, or --share is not N/M", file=sys.stderr)
        return 2
    counts: Counter[str] = Counter()
    for name, before, after in [*pairs(folder)][int(first) :: int(step)]:
        verdict, reason = judged(
            name, read_module(str(before)), read_module(str(after)), options.seconds
        )
        counts[verdict] += 1
        if reason:
            print(f"{name}: {verdict}: {reason}", flush=True)
    left_out = counts.pop("left out", 0)
    right, count = counts["same"] + counts["explained"], counts.total()
    print(", ".join(f"{name} {number}" for name, number in counts.items()), end="; ")
    print(f"{right} of {count}: {right / max(count, 1):.1%}; left out {left_out}")
    return 0 if right >= _LEAST * count else 1


def pairs(folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """The names of pairs, and their files."""
    for line in (folder / "index.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["status"] == "ok":
            yield row["id"].rpartition("/")[2], folder / row["before"], folder / row["after"]


def judged(name: str, before: Module, after: Module, seconds: float) -> tuple[str, str]:
    """A verdict on a pair, and the reason if it is not the usual one."""
    if not fits(before):
        return "left out", ""
    settings = RunSettings(
        seeds=1,
        specials=False,
        memory=_MEMORY,
        steps=None,
        deadline=Deadline(seconds),
        is_global=True,
    )
    begin = monotonic()
    try:
        mismatch = Reference(before, settings).examine(after).mismatch
    except HloError as error:
        if "unreduced" in error.message:
            return "left out", ""
        if name in _EXPLAINED:
            return "explained", _EXPLAINED[name]
        return "not run", f"{error.message} ({monotonic() - begin:.0f} s)"
    if mismatch is None:
        return "same", ""
    if "unreduced" in mismatch.reason:
        return "left out", ""
    if not mismatch.is_decided:
        return "not run", mismatch.reason
    if name in _EXPLAINED:
        return "explained", _EXPLAINED[name]
    return "different", mismatch.reason


def fits(program: Module) -> bool:
    """Whether the values of a program are small, and none is random."""
    return all(
        instruction.opcode not in _RANDOM
        and all(prod(leaf.dimensions) <= _MOST_ELEMENTS for leaf in instruction.shape.leaves())
        for instruction in program.instructions()
    )


if __name__ == "__main__":
    sys.exit(main())
