"""Let calls of equal computations share one."""

from __future__ import annotations

from collections import Counter

from hloopt.analysis.calls import reachable_from_entry
from hloopt.analysis.equality import Equality, outline
from hloopt.ir.computation import Computation
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register


@register(
    "unflatten-call-graph",
    preserves="bits",
    xla=XlaPass(
        "UnflattenCallGraph",
        "xla/hlo/transforms/simplifiers/unflatten_call_graph.h",
        compared="tests",
    ),
)
class UnflattenCallGraph(ModulePass):
    """Let all `call` instructions whose computations are equal call the first of these.

    The inverse of flatten-call-graph for calls; other callers (loops, conditionals, reductions)
    keep what they have. Computations are equal if they differ in names only: metadata, layouts
    and all that they call in turn count. What nothing reaches any more is removed. Linear in the
    size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        targets = [c for c in module.computations.values() if _is_target(c)]
        outlines = {target: outline(target) for target in targets}
        frequency = Counter(outlines.values())
        equality = Equality(is_layout_sensitive=True, ignored=frozenset())
        first: dict[int, Computation] = {}
        changed = False
        for target in targets:
            if frequency[outlines[target]] > 1:
                kept = first.setdefault(equality.class_of(target), target)
                changed |= kept is not target and _redirect_calls(target, kept, context)
        if changed:
            reachable = reachable_from_entry(module)
            unused = [c for c in module.computations.values() if c not in reachable]
            context.count("computations removed", len(unused))
            module.remove_computations(unused)
        return changed


def _is_target(computation: Computation) -> bool:
    """Whether calls may share the computation: one that is fused or wrapped has one owner."""
    opcodes = {caller.opcode for caller in computation.callers}
    return Opcode.CALL in opcodes and opcodes.isdisjoint((Opcode.FUSION, Opcode.ASYNC_START))


def _redirect_calls(old: Computation, new: Computation, context: PassContext) -> bool:
    changed = False
    for call in list(old.callers):
        if call.opcode is Opcode.CALL:
            if not context.apply(call, f"calls %{new.name}, which equals %{old.name}"):
                break
            context.count("calls redirected")
            call.set_called((new,))
            changed = True
    return changed
