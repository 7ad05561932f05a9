"""Rules about shapes that are known at run time only."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.checks.doubts import not_partitioned
from hloopt.checks.lint.costs import total, work_bytes
from hloopt.checks.lint.loops import loop_runs_text, runs_again
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS, Opcode
from hloopt.ir.shapes.shape import Shape

_MOST_RELATED = 5
_PADDING = frozenset(("PadToStatic", "SliceToDynamic"))
"""Targets of custom calls between arrays of a dynamic shape and such of its bounds."""
_NO_WORK = CONTROL_FLOW_CALLERS | {
    *(Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST)
}
"""Opcodes that only hand values on, or whose work stands elsewhere."""


@rule("HLL502", "dynamic-shape-in-loop", not_partitioned)
def dynamic_shape_in_loop(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Work on dynamic dimensions in bodies of loops. O(instructions)."""
    facts = view.facts
    known: dict[Shape, bool] = {}
    for computation in view.subject.module.computations.values():
        if not facts.is_in_loop(computation) or facts.is_in_fusion(computation):
            continue
        found = [each for each in computation.instructions if _is_dynamic(each, known)]
        if not found or not runs_again(view, found[0]):
            continue
        first, *others = found
        yield Finding(
            f"{counted(len(found), 'instruction works', 'instructions work')} on dynamic dimensions"
            f" in the body of a loop, first %{first.name}{loop_runs_text(view, first)}",
            first,
            total(Impact(moved=work_bytes(view, each)) for each in found),
            related=tuple(others[:_MOST_RELATED]),
        )


def _is_dynamic(instruction: Instruction, known: dict[Shape, bool]) -> bool:
    """Whether an instruction does work whose size is known at run time only."""
    if instruction.opcode in _NO_WORK:
        return False
    return custom_call_target(instruction) in _PADDING or any(
        _has_dynamic_dimension(value.shape, known) for value in (instruction, *instruction.operands)
    )


def _has_dynamic_dimension(shape: Shape, known: dict[Shape, bool]) -> bool:
    found = known.get(shape)
    if found is None:
        found = any(leaf.is_array and leaf.is_dynamic for leaf in shape.leaves())
        known[shape] = found
    return found
