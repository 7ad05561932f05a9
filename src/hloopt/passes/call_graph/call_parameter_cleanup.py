"""Pass to calls only what they need, and return only what they make."""

from __future__ import annotations

from hloopt.analysis.calls import callees_first
from hloopt.ir.attributes.typed import is_composite
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import read_element
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.dead_parameters import live_parameters, remove_dead_parameters
from hloopt.passes.rewriting.tuples import keep_elements


@register(
    "call-parameter-cleanup",
    preserves="bits",
    xla=XlaPass(
        "CallParameterCleanup",
        "xla/hlo/transforms/simplifiers/call_parameter_cleanup.h",
        compared="tests",
    ),
)
class CallParameterCleanup(ModulePass):
    """Remove parameters of called computations that are unused, or only handed back.

    Computations that only `call` instructions call, and that return a tuple, no longer return
    their own parameters: the caller has these values already. Parameters without another use go.
    Callers put the old result together from the new one and their operands, for tuple-simplifier
    to take apart. Callees are visited before callers. Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        restored: dict[Computation, dict[Instruction, list[Instruction]]] = {}
        for computation in callees_first(module):
            if not computation.callers or computation.root.opcode is not Opcode.TUPLE:
                continue
            if reason := _why_not(computation):
                for caller in computation.callers:
                    context.missed(caller, reason)
                continue
            for call, made in _clean(computation, context).items():
                restored.setdefault(call.parent, {})[call] = made
        if module.is_scheduled:
            for computation, placed in restored.items():
                computation.splice({call: [call, *made] for call, made in placed.items()})
        return module.version != before


def _why_not(computation: Computation) -> str | None:
    """The reason why a computation keeps its parameters and results, or None where they may
    change."""
    for caller in computation.callers:
        if caller.opcode is not Opcode.CALL:
            return f"%{computation.name} is also called by the {caller.opcode} %{caller.name}"
        if caller.parent.is_asynchronous:
            return f"%{computation.name} also runs asynchronously, in %{caller.name}"
        if is_composite(caller):
            return f"%{caller.name} is a composite, which means something as a whole"
    if computation.root.users:
        return f"%{computation.name} itself reads its result, %{computation.root.name}"
    if any("sharding" in i.attributes for i in (computation.root, *computation.callers)):
        return f"the result of %{computation.name} is sharded as a whole"
    return None


def _clean(computation: Computation, context: PassContext) -> dict[Instruction, list[Instruction]]:
    """Remove what is not needed; for each call what restores its result. O(edges)."""
    returned = sum(o.opcode is Opcode.PARAMETER for o in computation.root.operands)
    parameters = len(computation.parameters)
    if not returned and len(live_parameters(computation)) == parameters:
        return {}
    what = "its computation loses parameters that it does not use, or only hands back"
    if not context.apply(computation.root, what, remark=False):
        return {}
    restored = _return_no_parameters(computation) if returned else {}
    remove_dead_parameters(computation, context.as_part())
    removed = parameters - len(computation.parameters)
    context.count("parameters removed", removed)
    context.count("results removed", returned)
    for call in computation.callers:
        context.applied(call, f"{removed} operands and {returned} results less")
    return restored


def _return_no_parameters(computation: Computation) -> dict[Instruction, list[Instruction]]:
    root = computation.root
    outputs = list(root.operands)
    kept = [i for i, output in enumerate(outputs) if output.opcode is not Opcode.PARAMETER]
    root.set_operands([outputs[i] for i in kept])
    keep_elements(root, kept)
    return {call: _restore_result(call, outputs, kept) for call in computation.callers}


def _restore_result(
    call: Instruction, outputs: list[Instruction], kept: list[int]
) -> list[Instruction]:
    """Give users of a call, which returns only outputs `kept` now, a tuple of all; what was made.

    O(outputs + users).
    """
    result = call.parent.add(Opcode.TUPLE, call.shape)
    if "origin" in call.attributes:
        result.set_attribute("origin", call.attributes["origin"])
    call.replace_all_uses_with(result)
    keep_elements(call, kept)
    made = {output: read_element(call, index) for index, output in enumerate(kept)}
    result.set_operands(
        [
            made[i] if i in made else call.operands[output.parameter_number]
            for i, output in enumerate(outputs)
        ]
    )
    return [*made.values(), result]
