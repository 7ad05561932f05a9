"""Layouts that values keep while they are in host memory."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.diagnostics import PassRefused, counted
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.entry_layout import parse_entry_layout
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.memory_space.legalization.moving import move_out, swap
from hloopt.passes.memory_space.legalization.regions import (
    RENAMING,
    NotUnderstood,
    Plan,
    Region,
    plan_of,
    region_of,
)
from hloopt.passes.memory_space.legalization.steps import TO_HOST
from hloopt.passes.memory_space.places import Place
from hloopt.text.header import entry_layout


@register(
    "host-offload-legalize",
    preserves="bits",
    xla=XlaPass("HostOffloadLegalize", "xla/hlo/transforms/host_offload_legalize.h"),
)
class HostOffloadLegalize(ModulePass):
    """Move copies out of the part of a program where a value is in host memory.

    The host only stores; a copy, which changes a layout, is work for the device. A value is in host
    memory from a `MoveToHost`, or from a parameter that the entry layout has in memory space 5, to
    a `MoveToDevice`. It may go through tuples, optimization barriers, loops, bitcasts, reshapes and
    dynamic-update-slices of a buffer, and come back as a whole or by slices. It keeps the layout it
    came with, and a copy follows each `MoveToDevice`.

    The `MoveToDevice` of a slice moves directly behind the slice, and a `MoveToHost` directly in
    front of the dynamic-update-slice that writes its value. Where something needs the layout behind
    a copy, as a result of the program, the copy swaps places with a `MoveToHost` directly in front
    of it. A value stays as it is where something happens to it that is not listed here, and so does
    a copy behind which a bitcast or reshape does more than to rename dimensions. Refuses scheduled
    modules that have copies to move. Linear in the module, and in copies that follow one another;
    for a loop's state, in its elements times those in host memory.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        seen: set[Place] = set()
        before = module.version
        for start in list(_starts(module)):
            if start in seen or start.instruction not in start.instruction.parent:
                continue
            region = region_of(start)
            seen |= region.places.keys()
            if any(region.copies) and not _legalize(region, start.instruction, context):
                break
        return module.version != before


def _starts(module: Module) -> Iterator[Place]:
    """The values that are brought to host memory, buffers there, and parameters that are there."""
    for call in module.instructions(Opcode.CUSTOM_CALL):
        if custom_call_target(call) == TO_HOST and not call.parent.is_fusion:
            yield Place(call)
            yield from map(Place, _writes(call))
    stated = module.attributes.get("entry_computation_layout")
    parameters, _ = parse_entry_layout(stated or entry_layout(module))
    for parameter, shape in zip(module.entry.parameters, parameters, strict=True):
        for path, part in shape.subshapes():
            if part.is_on_host:
                yield Place(parameter, path)


def _writes(value: Instruction) -> Iterator[Instruction]:
    """The dynamic-update-slices that a value is the update of."""
    waiting = [value]
    for update in waiting:  # grows meanwhile
        for user in update.users:
            if user.opcode is Opcode.DYNAMIC_UPDATE_SLICE and user.operands[1] is update:
                yield user
            elif user.opcode in RENAMING:
                waiting.append(user)


def _legalize(region: Region, start: Instruction, context: PassContext) -> bool:
    """Move copies of a region; False where the limit is reached."""
    try:
        plan = plan_of(region)
    except NotUnderstood as reason:
        context.missed(start, f"copies behind it stay: {reason}")
        return True
    return _move_out(plan, start, context) and _swap(plan, context)


def _move_out(plan: Plan, start: Instruction, context: PassContext) -> bool:
    number = len(plan.moving)
    if not number:
        return True
    _refuse_schedule(start)
    copies = counted(number, "copy of it moves", "copies of it move")
    if not context.apply(start, f"{copies} out of host memory"):
        return False
    context.count("copies moved out of host memory", number)
    move_out(plan)
    return True


def _swap(plan: Plan, context: PassContext) -> bool:
    for copy, reason in plan.staying.items():
        (call,) = copy.operands
        is_alone = len(call.users) == 1 and not call.is_root
        if custom_call_target(call) != TO_HOST or not is_alone or copy.has_control_dependencies:
            context.missed(copy, f"stays in host memory: {reason}")
            continue
        _refuse_schedule(copy)
        if not context.apply(copy, f"comes before %{call.name}: {reason}"):
            return False
        context.count("copies moved before MoveToHost")
        swap(copy)
    return True


def _refuse_schedule(instruction: Instruction) -> None:
    if instruction.parent.module.is_scheduled:
        raise PassRefused(
            "copies leave host memory before there is a schedule",
            help="run hlo-descheduler before it",
        )
