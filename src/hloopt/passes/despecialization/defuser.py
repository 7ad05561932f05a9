"""Replace fusions by copies of what they fuse."""

from __future__ import annotations

from hloopt.analysis.calls import callees_first
from hloopt.ir.clone import own_computations
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import control_dependencies_can_move, inherit


@register(
    "defuser",
    preserves="bits",
    xla=XlaPass("Defuser", "xla/hlo/transforms/defuser.h", compared="tests"),
)
class Defuser(ModulePass):
    """Inline every fusion into its computation, innermost first; what they called goes.

    In a schedule copies take the place of the fusion. A fusion that runs asynchronously stays.
    Linear in the size of the result.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        changed = False
        for computation in callees_first(module):
            fusions = [i for i in computation.instructions if i.opcode is Opcode.FUSION]
            placed: dict[Instruction, list[Instruction]] = {}
            for fusion in fusions:
                if reason := _why_not(fusion):
                    context.missed(fusion, reason)
                elif not context.apply(fusion, f"inlined %{fusion.called[0].name}"):
                    break
                else:
                    context.count("fusions inlined")
                    placed[fusion] = _inline(fusion)
            if placed:
                _place(computation, placed)
                changed = True
        return changed


def _why_not(fusion: Instruction) -> str | None:
    """The reason why a fusion must stay, or None where it may be inlined."""
    if fusion.parent.is_asynchronous:
        return "it runs asynchronously"
    root = fusion.called[0].root
    if root.opcode is Opcode.PARAMETER:
        operand = fusion.operands[root.parameter_number]
        if not control_dependencies_can_move(fusion, operand):
            return f"a control predecessor of it may depend on %{operand.name}"
    return None


def _inline(fusion: Instruction) -> list[Instruction]:
    """Let copies of what a fusion fuses take its place; it stays behind without users."""
    body = fusion.called[0]
    is_shared = sum(body.callers.values()) > 1
    copies: dict[Instruction, Instruction] = {}
    made: list[Instruction] = []
    for instruction in stable_order(body):
        if instruction.opcode is Opcode.PARAMETER:
            copies[instruction] = fusion.operands[instruction.parameter_number]
            continue
        copy = fusion.parent.add_clone(instruction, [copies[o] for o in instruction.operands])
        copies[instruction] = copy
        made.append(copy)
        if is_shared:
            own_computations(copy)
        for predecessor in (*instruction.control_predecessors, *fusion.control_predecessors):
            copy.add_control_predecessor(copies.get(predecessor, predecessor))
    result = copies[body.root]
    inherit(fusion, result)
    fusion.move_control_dependencies_to(result)
    fusion.replace_all_uses_with(result)
    return made


def _place(computation: Computation, placed: dict[Instruction, list[Instruction]]) -> None:
    """Put copies where their fusions stand, and remove these with what they alone called."""
    module = computation.module
    if module.is_scheduled:
        computation.splice(placed)
    for fusion in placed:
        (body,) = fusion.called
        computation.remove(fusion)
        if not body.callers:
            module.remove_computations([body])
