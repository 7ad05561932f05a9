"""Record what XLA:GPU's simplify-fp-conversions makes of small programs full of converts.

    tools/record_conversions.py --shared DIR [--count N] [--seed N]

Writes tests/passes/precision/conversions.txt: a line for each program, which lists its instructions
and, behind `->`, what it returns; and a line for what XLA made of it, in the same form:

    p:f32 a:bf16(p) b:f32(a) c:neg(b) -> c a
    a:bf16(p) c:neg(p) p:f32 -> c a

A type in front of an operand is a convert to it; the answer is sorted by names. Needs XLA:GPU's
compiler: oracle/XLA_GPU.md.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from pathlib import Path

from hloopt.diagnostics import HloError
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.ordering import post_order
from hloopt.text import parse_module
from oracle_script import check_gpu_compiler, oracle_script

RECORD = Path(__file__).resolve().parents[1] / "tests/passes/precision/conversions.txt"
PASS = "simplify-fp-conversions"
_FLOATS = (
    *("f32", "f32", "bf16", "bf16", "f16", "f64", "f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz"),
    *("f8e5m2fnuz", "f8e4m3fnuz", "f8e3m4", "f8e4m3", "f8e8m0fnu", "f4e2m1fn"),
)
_OTHERS = ("s32", "s8", "u16", "s64", "pred")
_OPCODES = {"neg": "negate", "add": "add", "max": "maximum", "copy": "copy"}
_ITEM = re.compile(r"(\w+):(\w+)(?:\((\w+(?:,\w+)*)\))?")


def main() -> int:
    """Ask XLA about new programs, and write the record; 2 without its compiler."""
    parser = argparse.ArgumentParser(description="Record answers on chains of converts.")
    parser.add_argument("--shared", required=True, type=Path, help="the folder of shared data")
    parser.add_argument("--python", default=sys.executable, help="a Python that has XLA:GPU")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        check_gpu_compiler(arguments.shared, arguments.python)
    except HloError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 2
    chooser = random.Random(arguments.seed)
    programs = list(dict.fromkeys(program(chooser) for _ in range(arguments.count)))
    driver = oracle_script(arguments.shared / "oracle", "xla_gpu")
    answers = driver.compile_many(
        [hlo(each) for each in programs], target="h100_sxm", python=arguments.python, lhs=False,
        only=[PASS], passes=f"^{PASS}$", until="memory",
    )  # fmt: skip
    lines = []
    for each, answer in zip(programs, answers, strict=True):
        (step,) = answer.steps
        lines += [each, notation(parse_module(step.after or step.before)), ""]
    RECORD.write_text("\n".join(lines), encoding="utf-8")
    return 0


def program(chooser: random.Random) -> str:
    """A program of up to ten instructions, most of them converts of the newest values."""
    types = {"p": chooser.choice((*_FLOATS, *_OTHERS))}
    items = [f"p:{types['p']}"]
    for number in range(chooser.randint(2, 10)):
        name = f"v{number}"
        operand = chooser.choice(list(types)[-3:])
        opcode = chooser.choice(list(_OPCODES))
        if chooser.random() < 0.8 or types[operand] == "pred":
            types[name] = chooser.choice((*_FLOATS, *_FLOATS, *_OTHERS))
            items.append(f"{name}:{types[name]}({operand})")
        else:
            types[name] = types[operand]
            operands = f"{operand},{operand}" if opcode in ("add", "max") else operand
            items.append(f"{name}:{opcode}({operands})")
    newest = list(types)[-1]
    results = [newest, *(name for name in list(types)[1:-1] if chooser.random() < 0.2)]
    return f"{' '.join(items)} -> {' '.join(results)}"


def hlo(written: str) -> str:
    """The module that a line stands for. One result that is alone is returned as it is."""
    items, _, results = written.partition(" -> ")
    types: dict[str, str] = {}
    lines: list[str] = []
    for name, word, operands in _ITEM.findall(items):
        if not operands:
            types[name] = word
            lines.append(f"{name} = {word}[4] parameter(0)")
        elif word in _OPCODES:
            types[name] = types[operands.split(",")[0]]
            lines.append(f"{name} = {types[name]}[4] {_OPCODES[word]}({operands})")
        else:
            types[name] = word
            lines.append(f"{name} = {word}[4] convert({operands})")
    names = results.split()
    if len(names) > 1:
        shape = ", ".join(f"{types[name]}[4]" for name in names)
        lines.append(f"ROOT all = ({shape}) tuple({', '.join(names)})")
    else:
        lines = [f"ROOT {line}" if line.startswith(f"{names[0]} ") else line for line in lines]
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


def notation(module: Module) -> str:
    """The line for a module, its instructions by name: what XLA and hloopt print alike."""
    root = module.entry.root
    results = root.operands if root.opcode is Opcode.TUPLE else [root]
    items = [_item(i) for i in post_order(module.entry) if i.opcode is not Opcode.TUPLE]
    return f"{' '.join(sorted(items))} -> {' '.join(result.name for result in results)}"


def _item(instruction: Instruction) -> str:
    operands = ",".join(operand.name for operand in instruction.operands)
    words = {opcode: word for word, opcode in _OPCODES.items()}
    word = words.get(instruction.opcode, instruction.shape.type_name)
    return f"{instruction.name}:{word}({operands})" if operands else f"{instruction.name}:{word}"


if __name__ == "__main__":
    sys.exit(main())
