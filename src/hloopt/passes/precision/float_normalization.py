"""Let operations work in types that the backend can do, with conversions around them."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.calls import callees_first
from hloopt.collector import collector_paused
from hloopt.ir.clone import clone_to_change
from hloopt.ir.computation import Computation
from hloopt.ir.module import Module
from hloopt.ir.ordering import repair_schedule, stable_order
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.precision.float_support import TARGET_HELP, FloatSupport, support_of
from hloopt.passes.precision.normalizer import KEEP_COMPUTATIONS, UNTOUCHED, Normalizer
from hloopt.passes.rewriting.slice_places import NotedTypes
from hloopt.passes.simplification.dce import DeadCodeElimination
from hloopt.passes.simplification.tuple_simplifier import TupleSimplifier


@register(
    "float-normalization",
    preserves="precision",
    xla=XlaPass("FloatNormalization", "xla/hlo/transforms/simplifiers/float_normalization.h"),
)
class FloatNormalization(ModulePass):
    """Do in a type of more precision what the backend cannot do in one of less.

    An operation that may not have operands or results of the low type gets converts before and
    after it, and works in the high type; so does what it applies, in a copy of its own. One that
    may not have both types at once gets all of the low type where rounding more of its operands
    changes nothing, else all of the high type. Calls, loops, conditionals, fusions, custom calls
    and what has side effects keep their types, and so does the reduction of an all-reduce: where
    others apply it, too, it gets a copy. By default, as on XLA:CPU, nothing else may have the low
    type but barriers, associative scans, right shifts and counts of leading zeros; a `target` may
    do more in it.

    A convert of the low result to the high type then takes the result as it is, not rounded, unless
    `allow_excess_precision` is off. Tuples and dead code that this leaves are removed. Linear in
    the module's size and in that of the copies.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        float_support: FloatSupport | None = option(
            None, "which operations may have the low type; null: bf16, as XLA:CPU has it"
        )
        target: str | None = option(None, TARGET_HELP)
        allow_excess_precision: bool = option(
            True, "let a convert of a rounded result read it as it was before it was rounded"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        with collector_paused():
            return self._normalize(module, context)

    def _normalize(self, module: Module, context: PassContext) -> bool:
        before = module.version
        noted = NotedTypes(module)
        _separate_reductions(module, context)
        normalizer = Normalizer(
            module,
            support_of(self.options.float_support, self.options.target),
            excess_precision=self.options.allow_excess_precision,
        )
        if any(map(normalizer.has_low, module.instructions())):
            for computation in callees_first(module):
                if not _is_only_reduction(computation):
                    _normalize(computation, normalizer, context)
        if module.version == before:
            return False
        noted.restate()
        quiet = context.as_part()
        TupleSimplifier().run(module, quiet)
        DeadCodeElimination().run(module, quiet)
        repair_schedule(module.computations.values())
        return True


def _normalize(computation: Computation, normalizer: Normalizer, context: PassContext) -> None:
    """Convert around the instructions of a computation, operands before users. O(edges)."""
    high = normalizer.high
    for instruction in stable_order(computation):
        if instruction.opcode in UNTOUCHED:
            continue
        plan = normalizer.plan(instruction)
        if plan.is_empty:
            continue
        if reason := normalizer.why_not(instruction):
            context.missed(instruction, reason)
            continue
        what = f"operands are converted to {normalizer.low}" if plan.lowered else f"works in {high}"
        if not context.apply(instruction, what):
            return
        normalizer.convert(instruction, plan)
        context.count("instructions with converts")


def _separate_reductions(module: Module, context: PassContext) -> None:
    """Give the collectives that share a reduction with others a copy of it. O(callers)."""
    for computation in list(module.computations.values()):
        collectives = [c for c in computation.callers if c.opcode in KEEP_COMPUTATIONS]
        if not collectives or len(collectives) == len(computation.callers):
            continue
        if not context.apply(collectives[0], f"its reduction %{computation.name} is copied"):
            return
        copy = clone_to_change(computation)
        for collective in collectives:
            collective.set_called((copy,))


def _is_only_reduction(computation: Computation) -> bool:
    callers = computation.callers
    return bool(callers) and all(caller.opcode in KEEP_COMPUTATIONS for caller in callers)
