"""Make while loops carry less, or remove them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hloopt.analysis.loops.trip_count import LoopTrips, loop_trips
from hloopt.analysis.side_effects import SideEffects
from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import computation_post_order, stable_order
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.control_flow.while_loop_simplifier.comparisons import simplify_comparisons
from hloopt.passes.control_flow.while_loop_simplifier.constants import (
    propagate_constants,
    remove_constants,
)
from hloopt.passes.control_flow.while_loop_simplifier.counters import merge_induction_variables
from hloopt.passes.control_flow.while_loop_simplifier.dead import remove_dead_elements
from hloopt.passes.control_flow.while_loop_simplifier.flattening import flatten_state
from hloopt.passes.control_flow.while_loop_simplifier.removal import remove_loop, why_not_remove
from hloopt.passes.control_flow.while_loop_simplifier.repeated import merge_repeated_elements
from hloopt.passes.control_flow.while_loop_simplifier.state import MayApply
from hloopt.passes.simplification.dce import DeadCodeElimination


@register(
    "simplify-while-loops",
    preserves="bits",
    xla=XlaPass("WhileLoopSimplifier", "xla/service/while_loop_simplifier.h"),
)
class WhileLoopSimplifier(ModulePass):
    """Simplify while loops: what they carry from trip to trip, and loops of at most one trip.

    The first of these that applies to a loop is done, as in XLA; repeat the pass (`fixpoint`)
    for the rest. Elements of the state that are always equal become one; nested tuples become
    flat, except for those of sends and recvs in flight; elements that nothing needs, or that no
    trip changes, are not carried; constants are not carried; a loop of no trip becomes its initial
    state, a loop of one trip that trip; unchanged scalars that start as constants become constants;
    of several induction variables one is counted, the others are computed from it. Then dead code
    is removed.

    Loops with control dependencies, or that run asynchronously, stay. A loop whose body or
    condition something else calls, too, goes if it makes at most one trip; for the rest flatten the
    call graph first. Linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        simplify_compare_instrs: bool = option(
            False, "replace comparisons of an induction variable that always come out the same"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        loops = [
            instruction
            for computation in computation_post_order(module)
            for instruction in computation.instructions
            if instruction.opcode is Opcode.WHILE
        ]
        if not loops:
            return False
        effects = SideEffects(module)
        before = module.version
        for loop in loops:
            if loop in loop.parent:
                _Simplifier(loop, effects, self.options, context).simplify()
        if module.version == before:
            return False
        DeadCodeElimination().run(module, PassContext(wants_remarks=False))
        if module.is_scheduled:
            for computation in module.computations.values():
                _put_in_order(computation)
        return True


class _Simplifier:
    """Simplifies one loop."""

    def __init__(
        self,
        loop: Instruction,
        effects: SideEffects,
        options: WhileLoopSimplifier.Options,
        context: PassContext,
    ) -> None:
        self._loop = loop
        self._effects = effects
        self._options = options
        self._context = context

    def simplify(self) -> None:
        """Do what applies first, and say so, or why nothing applies."""
        loop = self._loop
        if loop.has_control_dependencies:
            self._context.missed(loop, "it has control dependencies")
            return
        if loop.parent.is_asynchronous:
            self._context.missed(loop, "it runs asynchronously")
            return
        shared = next((c for c in loop.called if sum(c.callers.values()) > 1), None)
        if shared is None and self._carry_less():
            return
        has_constants = shared is None and self._did(
            propagate_constants, "element", "of its state replaced by constants"
        )
        trips = loop_trips(loop)
        reason = why_not_remove(loop, trips, self._effects)
        if reason is None:
            done = "it makes one trip" if trips.computed else "it makes no trip"
            if self._context.apply(loop, f"removed: {done}"):
                self._context.count("loops removed")
                remove_loop(loop, trips)
        elif shared is not None:
            self._context.missed(
                loop, f"{reason}; %{shared.name} is called elsewhere, too: flatten the call graph"
            )
        elif not self._simplify_counters(trips) and not has_constants:
            self._context.missed(loop, reason)

    def _carry_less(self) -> bool:
        return (
            self._did(merge_repeated_elements, "element", "of its state merged with equal ones")
            or self._did(flatten_state, "element", "made of its state of nested tuples")
            or self._did(
                partial(remove_dead_elements, effects=self._effects),
                "element",
                "of its state removed: unused or never changed",
            )
            or self._did(remove_constants, "element", "of its state removed: constant")
        )

    def _simplify_counters(self, trips: LoopTrips) -> bool:
        return (
            self._options.simplify_compare_instrs
            and self._did(
                partial(simplify_comparisons, trips=trips), "comparison", "replaced by constants"
            )
        ) or self._did(
            merge_induction_variables, "induction variable", "now computed from another one"
        )

    def _did(self, simplify: Callable[[Instruction, MayApply], int], what: str, done: str) -> bool:
        """Simplify the loop, where that applies and may be done; whether it did."""

        def may_apply() -> bool:
            return self._context.apply(self._loop, f"simplified: {what}s {done}", remark=False)

        count = simplify(self._loop, may_apply)
        if count:
            self._context.applied(self._loop, f"{counted(count, what)} {done}")
            self._context.count(f"{what}s {done}", count)
        return count > 0


def _put_in_order(computation: Computation) -> None:
    order = stable_order(computation)
    if order != list(computation.instructions):
        computation.reorder(order)
