"""Tell called computations where they are called from."""

from __future__ import annotations

from hloopt.analysis.calls import callees_first, calls_by_computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.call_graph.call_metadata import CallMetadata


@register(
    "propagate-call-metadata",
    preserves="bits",
    xla=XlaPass(
        "PropagateCallMetadata", "xla/hlo/transforms/propagate_call_metadata.h", compared="nothing"
    ),
)
class PropagateCallMetadata(ModulePass):
    """Put the op_name and stack frame of each `call` in front of those of its callee.

    Callers come before callees, so names grow along nested calls. Bodies of loops, branches and
    asynchronous computations in the callee are included; reducers, fusions and the like are not.
    A computation with several callers gets all their names, and more with each run: flatten the
    call graph first where that matters. Linear in the size of the module times the depth of calls.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        calls = calls_by_computation(module)
        metadata = CallMetadata(module)
        changed = False
        for computation in reversed(callees_first(module, calls)):
            if computation.is_fusion:
                continue
            for call in calls.get(computation, ()):
                if call.opcode is Opcode.CALL and not context.is_at_limit:
                    changed |= _propagate(call, metadata, context)
        metadata.finish()
        return changed


def _propagate(call: Instruction, metadata: CallMetadata, context: PassContext) -> bool:
    """Put the metadata of a call in front of that of its callee; whether that changed anything."""
    prefix, frame = metadata.of(call)
    changed = False
    for instruction in call.called[0].instructions:
        changed |= metadata.add_to(instruction, prefix, frame)
    if changed:
        what = f"%{call.called[0].name} has its op_name and stack frame in front of its own"
        context.apply(call, what, remark=False)
    return changed
