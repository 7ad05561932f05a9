"""Gather what is broadcast before it is broadcast: fewer bytes over the network."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape import array_shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import attributes_for_another_value


@register(
    "all-gather-bcast-reorder",
    preserves="bits",
    xla=XlaPass(
        "AllGatherBroadcastReorder", "xla/hlo/transforms/collectives/all_gather_broadcast_reorder.h"
    ),
)
class AllGatherBroadcastReorder(ModulePass):
    """Turn an all-gather of a broadcast into a broadcast of an all-gather.

    Where the gathered dimension is one of the broadcast operand's, that dimension of the operand
    is gathered. Where the broadcast made it, each device's operand is gathered along a new first
    dimension, broadcast, and reshaped. Only where the broadcast has more elements than its
    operand, and the all-gather has one operand and no control dependencies. The new all-gather has
    a channel id of its own where the old one had one. As XLA:GPU does it, asked with all forms of
    both. Linear in the module's size.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        found = list(module.instructions(Opcode.ALL_GATHER))
        channels = unused_channel_ids(module)
        changed: dict[Computation, None] = {}
        for gather in found:
            if reason := why_not(gather):
                context.missed(gather, reason)
                continue
            broadcast = gather.operands[0]
            before, after = shape_bytes(broadcast.shape), shape_bytes(broadcast.operands[0].shape)
            what = f"each device sends the {counted(after, 'byte')} that %{broadcast.name} makes "
            if not context.apply(gather, f"{what}{before:,} of"):
                break
            context.count("all-gathers moved")
            changed[gather.parent] = None
            _reorder(gather, channels)
        repair_schedule(changed)
        return bool(changed)


def why_not(gather: Instruction) -> str | None:
    """The reason why an all-gather stays where it is; None where it can go before its broadcast."""
    if len(gather.operands) != 1:
        return f"it has {counted(len(gather.operands), 'operand')}"
    broadcast = gather.operands[0]
    if broadcast.opcode is not Opcode.BROADCAST:
        return f"it gathers %{broadcast.name}, which is not a broadcast"
    dimension = dimensions_of(gather)[0]
    count = broadcast.shape.element_count()
    if dimension not in dimensions_of(broadcast):
        count //= broadcast.shape.dimensions[dimension] or 1
    if count <= broadcast.operands[0].shape.element_count():
        return f"%{broadcast.name} has no more elements than its operand in other dimensions"
    if gather.shape.is_dynamic or broadcast.operands[0].shape.is_dynamic:
        return "it or what is broadcast has a dynamic dimension"
    if gather.has_control_dependencies or broadcast.has_control_dependencies:
        return "it or its broadcast has control dependencies"
    return None


def _reorder(gather: Instruction, channels: Iterator[int]) -> None:
    """Replace an all-gather of a broadcast. O(rank + users)."""
    broadcast = gather.operands[0]
    dimension = dimensions_of(gather)[0]
    spread = dimensions_of(broadcast)
    if dimension in spread:
        result = _gather_own(gather, broadcast, spread.index(dimension), channels)
    else:
        result = _gather_along_new(gather, broadcast, dimension, spread, channels)
    gather.replace_all_uses_with(result)
    gather.parent.remove(gather)
    if not broadcast.users and not broadcast.is_root:
        broadcast.parent.remove(broadcast)


def _gather_own(
    gather: Instruction, broadcast: Instruction, dimension: int, channels: Iterator[int]
) -> Instruction:
    """A broadcast of the operand gathered along one of its dimensions."""
    source = broadcast.operands[0]
    gathered = _gather(gather, source, dimension, _factor(gather), channels)
    return gather.parent.add(
        Opcode.BROADCAST,
        gather.shape,
        [gathered],
        name=broadcast.name,
        attributes=broadcast.attributes,
    )


def _gather_along_new(
    gather: Instruction,
    broadcast: Instruction,
    dimension: int,
    spread: tuple[int, ...],
    channels: Iterator[int],
) -> Instruction:
    """A broadcast of the operands of all devices, side by side in `dimension`."""
    add = gather.parent.add
    source, factor = broadcast.operands[0], _factor(gather)
    row = add(
        Opcode.RESHAPE, array_shape(source.shape.type_name, (1, *source.shape.dimensions)), [source]
    )
    gathered = _gather(gather, row, 0, factor, channels)
    sizes = broadcast.shape.dimensions
    places = (dimension, *(d if d < dimension else d + 1 for d in spread))
    wide = add(
        Opcode.BROADCAST,
        array_shape(source.shape.type_name, (*sizes[:dimension], factor, *sizes[dimension:])),
        [gathered],
        attributes={"dimensions": format_ints(places)},
    )
    return add(Opcode.RESHAPE, gather.shape, [wide])


def _gather(
    gather: Instruction,
    operand: Instruction,
    dimension: int,
    factor: int,
    channels: Iterator[int],
) -> Instruction:
    """The same all-gather of something else, along another dimension."""
    attributes = attributes_for_another_value(gather)
    attributes["dimensions"] = f"{{{dimension}}}"
    if "channel_id" in attributes:
        attributes["channel_id"] = str(next(channels))
    sizes = list(operand.shape.dimensions)
    sizes[dimension] *= factor
    return gather.parent.add(
        Opcode.ALL_GATHER,
        array_shape(operand.shape.type_name, tuple(sizes), layout=operand.shape.layout),
        [operand],
        name=gather.name,
        attributes=attributes,
    )


def _factor(gather: Instruction) -> int:
    """The number of operands the result holds."""
    dimension = dimensions_of(gather)[0]
    return gather.shape.dimensions[dimension] // gather.operands[0].shape.dimensions[dimension]
