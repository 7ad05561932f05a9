"""The graph of a module as Graphviz text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hloopt.diagnostics import printable
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.reports.console.units import middle
from hloopt.reports.html.palette import LIGHT, ink_on
from hloopt.reports.look import WORK
from hloopt.reports.work_kinds import work_kind

_LONGEST = 80
"""Characters of a name or shape: boxes stay readable."""


def module_to_dot(module: Module) -> str:
    """A box for each instruction, in a frame for each computation. O(instructions + operands).

    Arrows go from operands to users; dashed from control predecessors, dotted from callers to the
    roots of what they call.
    """
    numbers = {each: number for number, each in enumerate(module.instructions())}
    lines = [f"digraph {quoted(printable(module.name))} {{", "  node [shape=box]"]
    for frame, computation in enumerate(module.computations.values()):
        lines += _frame(frame, computation, numbers)
    for instruction, number in numbers.items():
        lines += _arrows(instruction, number, numbers)
    return "\n".join([*lines, "}"]) + "\n"


def quoted(text: str) -> str:
    """A string of Graphviz, in which nothing of the text is markup or an escape."""
    return json.dumps(text, ensure_ascii=False)


def _frame(frame: int, computation: Computation, numbers: dict[Instruction, int]) -> Iterator[str]:
    yield f"  subgraph cluster_{frame} {{"
    yield f"    label={_label('%' + computation.name)}"
    for instruction in computation.instructions:
        fill = LIGHT[WORK[work_kind(instruction)].fill]
        label = _label(f"%{instruction.name}", f"{instruction.opcode} {instruction.shape.text}")
        style = "filled,bold" if instruction.is_root else "filled"
        yield (
            f"    n{numbers[instruction]} [label={label}, style={quoted(style)}, "
            f'fillcolor="{fill}", fontcolor="{ink_on(fill)}"]'
        )
    yield "  }"


def _label(*texts: str) -> str:
    return quoted("\n".join(middle(printable(text), _LONGEST) for text in texts))


def _arrows(
    instruction: Instruction, number: int, numbers: dict[Instruction, int]
) -> Iterator[str]:
    for operand in instruction.operands:
        yield f"  n{numbers[operand]} -> n{number}"
    for before in instruction.control_predecessors:
        yield f"  n{numbers[before]} -> n{number} [style=dashed]"
    for called in instruction.called:
        yield f"  n{number} -> n{numbers[called.root]} [style=dotted]"
