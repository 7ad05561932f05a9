"""Replace arrays without elements by constants."""

from __future__ import annotations

from math import prod

from hloopt.analysis.side_effects import SideEffects
from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import nest_values
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination, started_by


@register(
    "zero-sized-hlo-elimination",
    preserves="bits",
    xla=XlaPass(
        "ZeroSizedHloElimination", "xla/hlo/transforms/simplifiers/zero_sized_hlo_elimination.h"
    ),
)
class ZeroSizedHloElimination(ModulePass):
    """Replace every array without elements by a constant `{}`.

    A parameter stays, and loses its users to the constant. What has side effects, control
    dependencies or dynamic dimensions stays, and so do fusions' insides. Operands of what was
    replaced go with it where nothing else uses them. Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        found = {
            computation: arrays
            for computation in module.computations.values()
            if not computation.is_fusion
            if (arrays := [i for i in computation.instructions if _is_empty(i)])
        }
        if not found:
            return False
        effects = SideEffects(module)
        dead = DeadCode(effects, DeadCodeElimination.Options(), PassContext())
        changed = False
        for computation, arrays in found.items():
            changed |= _eliminate(computation, set(arrays), effects, dead, context)
        return changed


def _is_empty(instruction: Instruction) -> bool:
    shape = instruction.shape
    return shape.is_array and 0 in shape.dimensions and instruction.opcode is not Opcode.CONSTANT


def _eliminate(
    computation: Computation,
    arrays: set[Instruction],
    effects: SideEffects,
    dead: DeadCode,
    context: PassContext,
) -> bool:
    changed = False
    for array in post_order(computation):
        if array not in arrays or array not in computation:
            continue
        if array.opcode is Opcode.PARAMETER and not (array.users or array.is_root):
            continue
        if reason := _why_not(array, effects):
            context.missed(array, reason)
            continue
        if not context.apply(array, "has no elements: replaced by a constant"):
            break
        context.count("arrays replaced")
        _replace(array, dead)
        changed = True
    if changed and computation.module.is_scheduled:
        computation.reorder(stable_order(computation))
    return changed


def _replace(array: Instruction, dead: DeadCode) -> None:
    literal = nest_values([], array.shape.dimensions)
    constant = array.parent.add(Opcode.CONSTANT, array.shape, payload=literal)
    if array.opcode is Opcode.PARAMETER:
        array.replace_all_uses_with(constant)
        return
    operands = array.operands
    replace_instruction(array, constant)
    dead.remove_dead(dict.fromkeys(operands))


_MOST_ROWS = 1 << 20


def _why_not(array: Instruction, effects: SideEffects) -> str | None:
    """The reason why `array` must stay, or None where it may be replaced."""
    shape = array.shape
    if shape.is_dynamic:
        return "its dimensions are dynamic"
    for part in started_by(array):
        if part.has_control_dependencies:
            return f"{'it' if part is array else f'%{part.name}'} has control dependencies"
    if effects.of(array):
        return "it has a side effect"
    rows = prod(shape.dimensions[: shape.dimensions.index(0)])
    if rows > _MOST_ROWS:
        return f"a literal with {counted(rows, 'empty row')} is too large to write"
    return None
