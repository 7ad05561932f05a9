"""Convert a value to a floating-point type at once, not by way of others."""

from __future__ import annotations

from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first, repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination


@register(
    "simplify-fp-conversions",
    preserves="precision",
    xla=XlaPass(
        "SimplifyFPConversions", "xla/hlo/transforms/simplifiers/simplify_fp_conversions.h"
    ),
)
class SimplifyFpConversions(ModulePass):
    """Remove converts between floating-point types that only lead to another convert.

    The last of several converts in a row, each to a floating-point type, takes what the first one
    takes; where that is of its own type, it goes. So values are no longer rounded on the way, and
    keep what a type there could not hold: `f32[] convert(bf16[] convert(f32[] x))` becomes `x`.
    Linear in the module's size.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        dead = DeadCode(SideEffects(module), DeadCodeElimination.Options(), context.as_part())
        for computation in list(module.computations.values()):
            version = computation.version
            orphans = _shorten_chains(computation, context)
            if computation.version != version:
                dead.remove_dead(orphans)
                repair_schedule([computation])
        return module.version != before


def _shorten_chains(computation: Computation, context: PassContext) -> list[Instruction]:
    """Let converts take what their chains begin with; returns those they took before."""
    orphans: list[Instruction] = []
    sources: dict[Instruction, Instruction] = {}
    converts = [i for i in computation.instructions if i.opcode is Opcode.CONVERT]
    if all(convert.operands[0].opcode is not Opcode.CONVERT for convert in converts):
        return orphans
    for convert in filter(_gives_float, depth_first(converts, _converts_before)):
        (operand,) = convert.operands
        if operand not in sources:
            sources[convert] = operand
            continue
        source = sources[convert] = sources[operand]
        if convert.has_control_dependencies:
            context.missed(convert, f"it keeps taking %{operand.name}: it has control dependencies")
            continue
        is_back = source.shape is convert.shape
        what = f"replaced by %{source.name}" if is_back else f"takes %{source.name}"
        if not context.apply(convert, f"{what}, without rounding in between"):
            break
        context.count("converts shortened")
        if is_back:
            replace_instruction(convert, source)
        else:
            convert.replace_operand(0, source)
        orphans.append(operand)
    return orphans


def _converts_before(convert: Instruction) -> list[Instruction]:
    return [operand for operand in convert.operands if operand.opcode is Opcode.CONVERT]


def _gives_float(convert: Instruction) -> bool:
    kind = convert.shape.element_type
    return kind is not None and kind.is_floating
