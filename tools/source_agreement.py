#!/usr/bin/env python3
"""Ask for the lines of instructions whose metadata was taken away, and compare with what it said.

    tools/source_agreement.py [FILE…] [--every N]

Each Nth instruction that costs something of its own and has a line loses its metadata for a moment;
what SourceLines then finds is counted by the rule that found it. Without FILE: the modules of
testdata/. Real modules lack metadata where XLA copies and converts, hardly ever at a dot: the share
here is that of rules asked about anything.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hloopt.analysis.source_lines import SourceLines
from hloopt.files import read_module
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.ir.sources.source_stacks import stack_of

_NO_COST = (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.CALL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--every", type=int, default=10, metavar="N")
    options = parser.parse_args()
    testdata = Path(__file__).resolve().parent.parent / "testdata"
    files = options.files or [str(path) for path in sorted(testdata.glob("*.hlo*"))]
    asked: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for file in files:
        module = read_module(file)
        for instruction in list(_with_line(module))[:: options.every]:
            rule, is_right = _ask(module, instruction)
            for name in (rule, "all"):
                asked[name] += 1
                right[name] += is_right
    for name, count in sorted(asked.items(), key=lambda item: item[1]):
        print(f"{name:<10} {right[name]:>6} of {count:>6} {right[name] / count:>7.1%}")


def _with_line(module: Module) -> Iterator[Instruction]:
    for computation in module.computations.values():
        if all(caller.opcode in CONTROL_FLOW_CALLERS for caller in computation.callers):
            for instruction in computation.instructions:
                if instruction.opcode not in _NO_COST and stack_of(instruction) is not None:
                    yield instruction


def _ask(module: Module, instruction: Instruction) -> tuple[str, bool]:
    """The rule that finds a line without the metadata, and whether it is the line."""
    true = SourceLines(module).of(instruction).label
    metadata = instruction.attributes["metadata"]
    instruction.set_attribute("metadata", None)
    found = SourceLines(module).of(instruction)
    instruction.set_attribute("metadata", metadata)
    return found.basis.value, found.label == true


if __name__ == "__main__":
    main()
