#!/usr/bin/env python3
"""Ask XLA:GPU's compiler what elementwise operations cost; write targets/tables/operations.json.

    tools/make_operation_costs.py --shared DIR --python PYTHON [--check]

Each operation is asked about in a kernel of so many of them that arithmetic alone decides its
time: what XLA says of that, less the share of memory, times the rate of the device, is the cost
of one. PYTHON has XLA's GPU plugin (see oracle/XLA_GPU.md). With `--check` nothing is written;
exits 1 if the table would change.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gpu_costs import ask_costs
from hloopt.analysis.latency.kernels import EXPOSED_SHARE, FLOPS_PER_CYCLE
from hloopt.diagnostics import HloError
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.targets import Target, load_target

PATH = Path(__file__).parents[1] / "src" / "hloopt" / "targets" / "tables" / "operations.json"
TARGET = "h100_sxm"
ELEMENTS = 1 << 20
LENGTH = 64
"""Operations of one kernel, one after another."""
DEFAULT = 3
_CLEAR = 10
"""The least cost that can be told from memory's time."""

_INTEGERS = ("s8", "u8", "s16", "s32", "u32", "s64", "u64")
_FLOATS = ("f16", "bf16", "f32", "f64")
_COMPLEX = ("c64",)
_TYPES = {
    **dict.fromkeys(("add", "multiply", "subtract", "divide"), (*_INTEGERS, *_FLOATS, *_COMPLEX)),
    **dict.fromkeys(("maximum", "minimum", "remainder"), (*_INTEGERS, *_FLOATS)),
    "power": (*_INTEGERS, *_FLOATS, *_COMPLEX),
    **dict.fromkeys(("atan2", "cbrt", "erf"), _FLOATS),
    **dict.fromkeys(
        (
            *("cosine", "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic"),
            *("rsqrt", "sine", "sqrt", "tan", "tanh"),
        ),
        (*_FLOATS, *_COMPLEX),
    ),
}
_BINARY = frozenset(
    ("add", "multiply", "subtract", "divide", "maximum", "minimum", "remainder", "power", "atan2")
)


class _Question(NamedTuple):
    opcode: str
    element_type: str

    @property
    def name(self) -> str:
        return f"q_{self.opcode.replace('-', '_')}_{self.element_type}"


def questions() -> Iterator[_Question]:
    """Every operation in every type that it takes."""
    for opcode, types in _TYPES.items():
        for element_type in types:
            yield _Question(opcode, element_type)


def module_text(asked: list[_Question]) -> str:
    """A module with a kernel for each question, and a collective, so that it gets scheduled."""
    computations, entry, results = [], [], []
    for number, question in enumerate(asked):
        shape = f"{question.element_type}[{ELEMENTS}]"
        lines, previous = [f"p = {shape} parameter(0)"], "p"
        for step in range(LENGTH):
            operands = f"{previous}, p" if question.opcode in _BINARY else previous
            root = "ROOT " if step == LENGTH - 1 else ""
            lines.append(f"{root}v{step} = {shape} {question.opcode}({operands})")
            previous = f"v{step}"
        body = "\n".join(lines)
        computations.append(f"c_{question.name} {{\n{body}\n}}")
        entry.append(f"p{number} = {shape} parameter({number})")
        entry.append(
            f"{question.name} = {shape} fusion(p{number}), kind=kLoop, calls=c_{question.name}"
        )
        results.append((question.name, shape))
    entry.append(f"last = f32[] parameter({len(asked)})")
    entry.append("start = f32[] all-reduce-start(last), to_apply=add, replica_groups={}")
    entry.append("done = f32[] all-reduce-done(start)")
    results.append(("done", "f32[]"))
    shapes, names = (", ".join(part) for part in zip(*((s, n) for n, s in results), strict=True))
    entry.append(f"ROOT all = ({shapes}) tuple({names})")
    reducer = "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }"
    head = "HloModule m, num_partitions=8"
    body = "\n".join(entry)
    return "\n".join((head, reducer, *computations, f"ENTRY e {{\n{body}\n}}")) + "\n"


def cost_of(question: _Question, microseconds: float, target: Target) -> int:
    """Flops of one element, from the time of its kernel."""
    gpu = target.gpu
    assert gpu is not None
    moved = 2 * ELEMENTS * ELEMENT_TYPES[question.element_type].bytes
    memory = moved / target.memory_bandwidth * 1e6
    rate = gpu.cores * gpu.units_per_core * FLOPS_PER_CYCLE * gpu.clock
    compute = microseconds - EXPOSED_SHARE * memory
    return round(compute / 1e6 * rate / (ELEMENTS * LENGTH))


def main(arguments: list[str] | None = None) -> int:
    """Ask, and write the table or compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--python", required=True, help="the Python with XLA's GPU plugin")
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(arguments)
    asked = list(questions())
    try:
        answer = ask_costs(module_text(asked), TARGET, options.shared, options.python)
    except HloError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    costs = answer["node"]
    device = load_target(TARGET)
    others: dict[str, dict[str, int]] = defaultdict(dict)
    for question in asked:
        cost = cost_of(question, costs[question.name], device)
        if cost > _CLEAR:
            others[question.opcode][question.element_type] = cost
    return _finish(_text(dict(sorted(others.items()))), check=options.check)


def _finish(text: str, *, check: bool) -> int:
    if PATH.exists() and PATH.read_text(encoding="utf-8") == text:
        return 0
    if not check:
        PATH.write_text(text, encoding="utf-8")
    print(f"{'differs' if check else 'wrote'}: {PATH.name}")
    return int(check)


def _text(others: dict[str, dict[str, int]]) -> str:
    """JSON with a line for each operation."""
    source = f"XLA:GPU's compiler, asked by tools/make_operation_costs.py about {TARGET}"
    lines = ",\n".join(f"  {json.dumps(opcode)}: {json.dumps(others[opcode])}" for opcode in others)
    head = f'{{\n "source": {json.dumps(source)},\n "default": {DEFAULT},\n "others": {{\n'
    return f"{head}{lines}\n }}\n}}\n"


if __name__ == "__main__":
    sys.exit(main())
