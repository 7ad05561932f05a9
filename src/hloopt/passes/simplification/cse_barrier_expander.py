"""Remove optimization barriers."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import control_dependencies_can_move


@register(
    "cse-barrier-expander",
    preserves="bits",
    xla=XlaPass(
        "OptimizationBarrierExpander",
        "xla/hlo/transforms/expanders/optimization_barrier_expander.h",
    ),
)
class CseBarrierExpander(ModulePass):
    """Replace each opt-barrier by its operand, once no pass needs to be held back any more.

    Control dependencies of a barrier move to its operand, and a barrier stays where they cannot.
    So do barriers in fusions. Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        for computation in module.computations.values():
            if not computation.is_fusion:
                _expand_all(computation, context)
        return module.version != before


def _expand_all(computation: Computation, context: PassContext) -> None:
    barriers = [i for i in computation.instructions if i.opcode is Opcode.OPT_BARRIER]
    orders = False
    for barrier in barriers:
        (operand,) = barrier.operands
        if reason := _why_not(barrier, operand):
            context.missed(barrier, reason)
            continue
        if not context.apply(barrier, f"replaced by %{operand.name}"):
            break
        context.count("barriers removed")
        orders |= barrier.has_control_dependencies
        barrier.move_control_dependencies_to(operand)
        barrier.replace_all_uses_with(operand)
        computation.remove(barrier)
    if orders and computation.module.is_scheduled:
        computation.reorder(stable_order(computation))


def _why_not(barrier: Instruction, operand: Instruction) -> str | None:
    """The reason why `barrier` must stay, or None where its operand may replace it."""
    if barrier.shape is not operand.shape:
        return f"its layout differs from that of %{operand.name}"
    if not control_dependencies_can_move(barrier, operand):
        return f"a control predecessor of it may depend on %{operand.name}"
    return None
