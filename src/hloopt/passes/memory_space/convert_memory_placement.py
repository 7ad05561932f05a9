"""Placements that a front end asks for, as the custom calls that XLA's passes look for."""

from __future__ import annotations

from hloopt.diagnostics import PassRefused, counted
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.values import quote_string
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape import compatible
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register

_TARGETS = {
    "pinned_host": "MoveToHost",
    "unpinned_host": "MoveToHost",
    "device": "MoveToDevice",
    "vmem": "PinToDeviceSram",
    "pinned_device": "PinToDevice",
}
"""The target for each kind of memory."""


@register(
    "convert-memory-placement-to-internal-annotations",
    preserves="bits",
    xla=XlaPass(
        "ConvertMemoryPlacementToInternalAnnotations",
        "xla/hlo/transforms/convert_memory_placement_to_internal_annotations.h",
    ),
)
class ConvertMemoryPlacement(ModulePass):
    """Make MoveToHost, MoveToDevice, PinToDeviceSram or PinToDevice of `annotate_device_placement`.

    The frontend attribute `_xla_buffer_placement` says which: pinned_host and unpinned_host,
    device, vmem, pinned_device. Other values stay. The new call has the shape of the operand and
    keeps the sharding alone, as in XLA. A placement on the host with several operands is refused.
    Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        touched: dict[Computation, None] = {}
        for call in list(module.instructions(Opcode.CUSTOM_CALL)):
            if custom_call_target(call) != "annotate_device_placement" or call.parent.is_fusion:
                continue
            place = frontend_attribute(call, "_xla_buffer_placement") or ""
            target = _TARGETS.get(place)
            if target is None:
                context.missed(call, f"'{place}' is no memory that it can be placed in")
                continue
            if len(call.operands) != 1 and target == "MoveToHost":
                raise PassRefused(
                    f"%{call.name} places {counted(len(call.operands), 'operand')} on the host",
                    help="annotate_device_placement takes one operand",
                )
            if len(call.operands) != 1 or not compatible(call.shape, call.operands[0].shape):
                context.missed(call, "it does not have one operand of its own shape")
                continue
            if not context.apply(call, f"{target} now"):
                break
            context.count("placements converted")
            touched[call.parent] = None
            _convert(call, target)
        repair_schedule(touched)
        return bool(touched)


def _convert(call: Instruction, target: str) -> None:
    parent, (operand,) = call.parent, call.operands
    attributes = {"custom_call_target": quote_string(target)}
    if "sharding" in call.attributes:
        attributes["sharding"] = call.attributes["sharding"]
    new = parent.add(Opcode.CUSTOM_CALL, operand.shape, [operand], attributes=attributes)
    call.move_control_dependencies_to(new)
    call.replace_all_uses_with(new)
    parent.remove(call)
