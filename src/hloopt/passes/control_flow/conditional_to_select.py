"""Do without conditionals where there is no control flow."""

from __future__ import annotations

from hloopt.analysis.call_graph import CallContext, CallGraph
from hloopt.analysis.side_effects import SideEffects
from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.call_graph.call_inliner import CallInliner, Inliner
from hloopt.passes.control_flow.branch_contents import BranchContents
from hloopt.passes.control_flow.branches import call_both_branches
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.rewriting.selects import select_between, why_no_select
from hloopt.passes.simplification.dce import remove_unreachable, unreachable_computations


@register(
    "conditional-to-select",
    preserves="bits",
    xla=XlaPass("ConditionalToSelect", "xla/service/conditional_to_select.h"),
)
class ConditionalToSelect(ModulePass):
    """Replace conditionals in computations that are applied to elements by selects.

    That is in what map, reduce, sort and the like call, directly or not, and nothing else: there
    both branches can be computed, however expensive, but nothing can be jumped over.
    Conditionals with more than two branches, side effects, loops (which may not end where they
    should not run) or control dependencies stay. What the branches did not read is left to dce.
    Linear in the size of the result.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        unreachable = unreachable_computations(module)
        effects, contents = SideEffects(module), BranchContents()
        inliner = Inliner(module, CallInliner.Options(), cleans_up=True)
        touched: list[Computation] = []
        for node in CallGraph.build(module).visit_order():
            computation = node.computation
            if node.context is not CallContext.EMBEDDED or computation in unreachable:
                continue
            calls: list[Instruction] = []
            for conditional in [
                i for i in computation.instructions if i.opcode is Opcode.CONDITIONAL
            ]:
                if reason := _why_not(conditional, effects, contents):
                    context.missed(conditional, reason)
                    continue
                if not context.apply(conditional, "replaced by selects"):
                    break
                context.count("conditionals removed")
                calls += _replace(conditional)
            inliner.inline(computation, calls)
            if calls:
                touched.append(computation)
        if module.version == before:
            return False
        inliner.metadata.finish()
        repair_schedule(touched)
        remove_unreachable(module, unreachable)
        return True


def _why_not(
    conditional: Instruction, effects: SideEffects, contents: BranchContents
) -> str | None:
    """The reason why the conditional must stay, or None where selects can take its place."""
    if len(conditional.called) != 2:
        return f"it has {counted(len(conditional.called), 'branch', 'branches')}, not two"
    if conditional.has_control_dependencies:
        return "it has control dependencies"
    if effects.of(conditional):
        return "a branch has a side effect"
    for branch in conditional.called:
        if loop := contents.loop(branch):
            return f"%{loop.name} in %{branch.name} is a loop"
    return why_no_select(conditional.shape)


def _replace(conditional: Instruction) -> list[Instruction]:
    """Replace the conditional by calls of both branches and selects; returns the calls."""
    first, second = calls = call_both_branches(conditional)
    decision = conditional.operands[0]
    if decision.shape.type_name != "pred":  # an index: all but 0 is the last branch
        shape = decision.shape.with_element_type("pred")
        decision = conditional.parent.add(Opcode.CONVERT, shape, [decision])
        first, second = second, first
    replace_instruction(conditional, select_between(decision, first, second))
    return calls
