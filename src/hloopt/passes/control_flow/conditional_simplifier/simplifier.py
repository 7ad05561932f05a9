"""Simplify conditionals, or do without them."""

from __future__ import annotations

from hloopt.analysis.calls import callees_first
from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.call_graph.call_inliner import CallInliner, Inliner
from hloopt.passes.control_flow.branches import branches_of, runs_asynchronously
from hloopt.passes.control_flow.conditional_simplifier.inputs import drop_unused_inputs
from hloopt.passes.control_flow.conditional_simplifier.outputs import (
    drop_unused_outputs,
    merge_duplicate_outputs,
)
from hloopt.passes.control_flow.conditional_simplifier.removal import Removal, replace_by_calls
from hloopt.passes.simplification.dce import (
    DeadCode,
    DeadCodeElimination,
    remove_unreachable,
    unreachable_computations,
)


@register(
    "simplify-conditional",
    preserves="bits",
    xla=XlaPass("ConditionalSimplifier", "xla/service/conditional_simplifier.h"),
)
class ConditionalSimplifier(ModulePass):
    """Simplify what goes into conditionals and what comes out, or do without them.

    - Outputs that are the same value in every branch are merged, unread ones dropped. A
      conditional that is only there for its side effects gives an empty tuple.
    - A conditional with a constant predicate or index, or with one branch, becomes that branch.
    - A conditional on a predicate whose branches are cheap (elementwise, reshaping, slicing,
      reducing) becomes both branches and selects.
    - Elements of a tuple that a branch takes but does not read are no longer passed.

    A conditional with a sharding, or that runs asynchronously, stays as it is. One with control
    dependencies, side effects, collectives or a scheduling group is simplified but stays. Elements
    of tuples that inlining brings together are left to tuple-simplifier. Linear in the size of the
    module and of what is copied; another run may find more.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        if next(module.instructions(Opcode.CONDITIONAL), None) is None:
            return False
        before = module.version
        simplifier = _Simplifier(module, context)
        simplifier.simplify_outputs()
        simplifier.remove_conditionals()
        simplifier.remove_computations()
        simplifier.simplify_inputs()
        simplifier.remove_computations()
        if module.version == before:
            return False
        repair_schedule(module.computations.values())
        return True


class _Simplifier:
    def __init__(self, module: Module, context: PassContext) -> None:
        self.module = module
        self.context = context
        self.effects = SideEffects(module)
        self.dead = DeadCode(self.effects, DeadCodeElimination.Options(), context.as_part())
        self.unreachable = unreachable_computations(module)

    def simplify_outputs(self) -> None:
        """Remove results that no caller reads, callers first: they decide what branches have to
        give."""
        for computation in reversed(self._callees_first()):
            pending = [computation]
            while pending:
                for conditional in _conditionals(pending.pop()):
                    if _why_untouchable(conditional):
                        continue
                    merge_duplicate_outputs(conditional, self.context)
                    pending += drop_unused_outputs(conditional, self.dead, self.context)

    def remove_conditionals(self) -> None:
        """Remove cheap conditionals, callees first: their caller may become cheap by that."""
        removal = Removal(self.effects)
        inliner = Inliner(self.module, CallInliner.Options(), cleans_up=True)
        for computation in self._callees_first():
            calls: list[Instruction] = []
            for conditional in _conditionals(computation):
                if conditional not in computation:  # died with the branch that read it
                    continue
                if reason := _why_untouchable(conditional) or removal.why_not(conditional):
                    self.context.missed(conditional, reason)
                    continue
                if not self.context.apply(conditional, "replaced by what its branches compute"):
                    break
                self.context.count("conditionals removed")
                operands = list(conditional.operands)
                calls += replace_by_calls(conditional)
                self.dead.remove_dead(operands)
            inliner.inline(computation, [call for call in calls if call in computation])
        inliner.metadata.finish()

    def simplify_inputs(self) -> None:
        """Remove operands that no branch reads, callees first: callers need not make them."""
        is_branch = set(branches_of(self.module))
        for computation in self._callees_first():
            if computation in is_branch:
                drop_unused_inputs(computation, self.dead, self.context)

    def remove_computations(self) -> None:
        """Remove the computations that nothing runs any more."""
        remove_unreachable(self.module, self.unreachable)

    def _callees_first(self) -> list[Computation]:
        return [c for c in callees_first(self.module) if c not in self.unreachable]


def _conditionals(computation: Computation) -> list[Instruction]:
    return [i for i in computation.instructions if i.opcode is Opcode.CONDITIONAL]


def _why_untouchable(conditional: Instruction) -> str | None:
    """The reason why the conditional must stay as it is, or None where it may change."""
    if "sharding" in conditional.attributes:
        return "it has a sharding, so it is still to be partitioned"
    if runs_asynchronously(conditional):
        return "it runs asynchronously"
    return None
