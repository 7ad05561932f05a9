"""Remove custom calls that only say how values are sharded."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import SHARDING_GROUP, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import inherit

_BOUNDARIES = frozenset(("SPMDShardToFullShape", "SPMDFullToShardShape"))
"""Targets of calls that stay, unused."""
_TARGETS = _BOUNDARIES | {
    *("Sharding", "ShardBarrierFrom", "ShardBarrierTo"),
    *("xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier", SHARDING_GROUP),
}


@register(
    "sharding-remover",
    preserves="bits",
    xla=XlaPass("ShardingRemover", "xla/service/sharding_remover.h"),
)
class ShardingRemover(ModulePass):
    """Let users of sharding custom calls take the operand: one device has no use for them.

    `Sharding`, barriers of the propagation and Shardy's custom calls become copies of the operand
    with their annotations, which nothing reads; the two between shard and whole stay, unused. `dce`
    removes both, as after XLA's pass. A sharding group goes. Sharding attributes of other
    instructions stay, and so do fusions' insides. Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        touched: dict[Computation, None] = {}
        for computation in module.computations_with(Opcode.CUSTOM_CALL):
            if computation.is_fusion:
                continue
            passed: list[Instruction] = []
            for call in post_order(computation):
                target = custom_call_target(call)
                if target not in _TARGETS or (target in _BOUNDARIES and not _is_used(call)):
                    continue
                if reason := _why_not(call, target):
                    context.missed(call, reason)
                    continue
                if not context.apply(call, f"{target} gives way to what it annotates"):
                    break
                context.count("custom calls removed")
                touched[computation] = None
                call.replace_all_uses_with(call.operands[0])
                if target not in _BOUNDARIES:
                    passed.append(call)
            for call in reversed(passed):  # XLA's order
                _leave_copy(call)
        repair_schedule(touched)
        return bool(touched)


def _is_used(call: Instruction) -> bool:
    return bool(call.users) or call.is_root


def _why_not(call: Instruction, target: str) -> str | None:
    """The reason why a call must stay, or None where its operand can take its place."""
    if len(call.operands) != 1:
        return "it does not have one operand"
    if target == SHARDING_GROUP:
        if _is_used(call):
            return "its result is used"
        return "it has control dependencies" if call.has_control_dependencies else None
    (operand,) = call.operands
    if call.shape is not operand.shape:
        return f"its shape differs from that of %{operand.name}"
    return None


def _leave_copy(call: Instruction) -> None:
    """Replace a call that nothing reads by a copy of its operand; a sharding group by nothing."""
    parent, (operand,) = call.parent, call.operands
    if custom_call_target(call) != SHARDING_GROUP:
        copy = parent.add(Opcode.COPY, call.shape, [operand])
        inherit(call, copy)
        call.move_control_dependencies_to(copy)
    parent.remove(call)
