#!/usr/bin/env python3
"""Compare the copies that we insert with those of XLA:CPU, and the temporaries that come of them.

    tools/copy_agreement.py --shared DIR [--results FILE] [--program NAME…]

Each program of `oracle/memory` is compiled by XLA:CPU as JAX wrote it. What its copy insertion got
is given to ours. XLA's later passes run on the result, and the instructions are put in the order
that is recorded for the program: an instruction takes the place of that with the same opcode,
attributes and operands, where a copy counts as what it copies; a copy that XLA does not have stands
right before what first reads it. Temporaries of our buffer assignment are compared with XLA's
recorded statistics. Programs with results in FILE are not run again. Prints a line for each, with
the absolute error; exits 1 if temporaries are within 2 % on fewer than 95 %, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from copy_lib.compiler import Compiler
from copy_lib.final_order import FinalOrder
from hloopt.ir import Module, Opcode
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import CPU
from hloopt.memory.statistics import statistics_of
from hloopt.passes.copy_insertion import insert_copies
from hloopt.text import parse_module, print_module

_WITHIN = 0.02
_LEAST = 0.95


@dataclass(frozen=True, slots=True)
class Result:
    """The way one program compares. Sizes are bytes."""

    program: str
    copies: int
    xla_copies: int
    unmatched: int
    """Instructions for which none stands in the recorded order."""
    temporaries: int
    xla_temporaries: int

    @property
    def error(self) -> int:
        return self.temporaries - self.xla_temporaries

    @property
    def is_within(self) -> bool:
        return abs(self.error) <= _WITHIN * self.xla_temporaries

    def __str__(self) -> str:
        return (
            f"{self.program:<32}{self.copies:>7}{self.xla_copies:>7}{self.unmatched:>10}"
            f"{self.temporaries:>14,}{self.xla_temporaries:>14,}{self.error:>+12,}"
            f"  {'ok' if self.is_within else 'OFF'}"
        )


_HEADER = (
    f"{'program':<32}{'copies':>7}{'XLA':>7}{'unmatched':>10}{'temporaries':>14}{'XLA':>14}"
    f"{'error':>12}"
)


def compare(folder: Path, compiler: Compiler) -> Result:
    """Run one program through XLA and us."""
    steps = compiler.steps((folder / "before_optimizations.hlo").read_text(encoding="utf-8"))
    module = parse_module(steps.before)
    insert_copies(module, backend=CPU)
    copies = _copies(module)
    module = parse_module(compiler.run(print_module(module), steps.later))
    recorded = parse_module((folder / "after_optimizations.hlo").read_text(encoding="utf-8"))
    order = FinalOrder(module, recorded)
    assignment = BufferAssignment.of(module, orders=order.orders(), backend=CPU)
    statistics = json.loads((folder / "memory.json").read_text(encoding="utf-8"))["stats"]
    return Result(
        folder.name,
        copies,
        _copies(parse_module(steps.after)),
        len(order.unmatched),
        statistics_of(assignment).device.temp,
        statistics["temp_size_in_bytes"],
    )


def _copies(module: Module) -> int:
    return sum(1 for _ in module.instructions(Opcode.COPY))


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--results", type=Path, help="JSON lines: read if it is there, added to")
    parser.add_argument("--program", action="append", default=[], help="only this one")
    options = parser.parse_args(arguments)
    oracle = options.shared / "oracle"
    folders = [path.parent for path in sorted((oracle / "memory").glob("*/memory.json"))]
    folders = [f for f in folders if not options.program or f.name in options.program]
    if not folders:
        parser.error(f"no such programs in {oracle / 'memory'}")
    known = _known(options.results)
    compiler = Compiler(oracle)
    results = []
    print(_HEADER)
    for folder in folders:
        result = known.get(folder.name) or compare(folder, compiler)
        if options.results and folder.name not in known:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result)) + "\n")
        results.append(result)
        print(result, flush=True)
    counts = Counter(result.is_within for result in results)
    same = sum(result.copies == result.xla_copies for result in results)
    print(f"as many copies as XLA: {same} of {len(results)}")
    print(f"temporaries within {_WITHIN:.0%}: {counts[True]} of {len(results)}")
    return 0 if counts[True] >= _LEAST * len(results) else 1


def _known(path: Path | None) -> dict[str, Result]:
    if path is None or not path.exists():
        return {}
    found = [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {result.program: result for result in found}


if __name__ == "__main__":
    sys.exit(main())
