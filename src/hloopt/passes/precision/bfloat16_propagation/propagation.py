"""The pass that propagates a low precision from readers to what they read."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.collector import collector_paused
from hloopt.diagnostics import PassRefused
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.precision.bfloat16_propagation.backward import BackwardPass
from hloopt.passes.precision.bfloat16_propagation.consumption import Consumption
from hloopt.passes.precision.bfloat16_propagation.fixed import is_fixed
from hloopt.passes.precision.bfloat16_propagation.leaves import Leaves
from hloopt.passes.precision.bfloat16_propagation.loop_inputs import LoopInputs
from hloopt.passes.precision.bfloat16_propagation.resolution import Resolution
from hloopt.passes.precision.bfloat16_propagation.rewrite import clean_up, make_low
from hloopt.passes.precision.float_support import TARGET_HELP, FloatSupport, support_of
from hloopt.passes.rewriting.slice_places import NotedTypes


@register(
    "bfloat16-propagation",
    preserves="precision",
    xla=XlaPass(
        "BFloat16Propagation", "xla/hlo/transforms/bfloat16_propagation.h", compared="tests"
    ),
)
class Bfloat16Propagation(ModulePass):
    """Give results the low precision that all their readers round them to anyway.

    A result becomes low where each reader rounds it by itself, as a matrix unit or a convert does,
    or only moves its elements to where they are rounded. So it goes through tuples, calls, loops,
    branches, fusions and asynchronous computations, and values that meet get one type. Parameters
    and results of the program keep their types, and so do custom calls, what has side effects and
    what reads bits. Which operations can be low, and which round, is for `float_support` to say.
    Near-linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        float_support: FloatSupport | None = option(
            None, "which operations may have the low type; null: bf16, only moved and passed on"
        )
        target: str | None = option(None, TARGET_HELP)

    options: Options

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        given = self.options.float_support
        if given is not None and given.operand_effectively_low:
            self.read_type = given.read_type

    def run(self, module: Module, context: PassContext) -> bool:
        _refuse_sequential_scans(module)
        if context.is_at_limit:
            return False
        with collector_paused():
            return self._propagate(module, context)

    def _propagate(self, module: Module, context: PassContext) -> bool:
        support = support_of(self.options.float_support, self.options.target)
        inputs = LoopInputs(module, support.high)
        leaves = Leaves(module, support)
        consumption = Consumption(leaves)
        BackwardPass(leaves, consumption).run()
        Resolution(leaves, consumption).run()
        _report_missed(consumption, context)
        count = len(leaves.low)
        first = next(iter(leaves.low), None)
        what = f"it and all that goes with it become {support.low}"
        if first is None or not context.apply(first, what, remark=False):
            inputs.remove()
            return False
        context.count("instructions changed", count)
        for instruction in leaves.low:
            context.applied(instruction, f"gives {support.low} now")
        noted = NotedTypes(module)
        make_low(leaves.low, support.low)
        noted.restate()
        clean_up(module)
        return True


def _refuse_sequential_scans(module: Module) -> None:
    """Raise PassRefused for a scan whose steps depend on each other's order."""
    for computation in module.computations.values():
        for caller in computation.callers:
            if (
                caller.opcode is Opcode.SCAN
                and caller.attributes.get("is_associative", "false") != "true"
            ):
                raise PassRefused(
                    f"Non-associative scan '%{caller.name}' has to be expanded before",
                    span=module.span_of(caller),
                )


def _report_missed(consumption: Consumption, context: PassContext) -> None:
    """Report the values that some readers round and one does not, by name of that one."""
    leaves = consumption.leaves
    for value, obstacle in consumption.refused.items():
        if value in consumption.taken:
            definer = leaves.definition(value).instruction
            if definer.opcode is not Opcode.PARAMETER and not is_fixed(definer):
                context.missed(
                    definer, f"stays {leaves.support.high}: %{obstacle.user.name} reads all of it"
                )
