"""Make reduce-scatters of all-reduces of which each device keeps only a part."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from hloopt.analysis.device_values import DeviceValues
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.collectives.shards import (
    ShardSlice,
    reduced_behind,
    shard_slice,
    why_not_alone,
    with_dimension,
)
from hloopt.passes.rewriting.replace import attributes_for_another_value, replace_instruction


@register(
    "reduce-scatter-creator",
    preserves="bits",
    xla=XlaPass(
        "gpu::ReduceScatterCreator", "xla/backends/gpu/transforms/reduce_scatter_creator.h"
    ),
)
class ReduceScatterCreator(ModulePass):
    """Make a reduce-scatter of an all-reduce and the dynamic-slice of its result.

    Each device has to keep the part of its rank in its group: the first one the first part, and so
    on. Where the slice begins is computed for all devices, so that any way to write it is
    understood that depends on partition-id, replica-id and constants alone, tables included. There
    may be a reshape in between that leaves the sliced dimension as it is. Parts that leave a rest
    are cut off before the reduce-scatter. Asked of XLA:GPU's compiler: forms, channels (a new one
    if there was one), the reshape and the rest. XLA knows fewer ways to write where a slice begins,
    and drops metadata and frontend attributes. Linear in the module's size, and O(devices) for each
    index of a slice.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        grid = device_counts(module)
        values = DeviceValues(grid)
        channel_ids = unused_channel_ids(module)
        changed: dict[Computation, None] = {}
        for computation in module.computations_with(Opcode.ALL_REDUCE):
            for part in post_order(computation):
                if part.opcode is not Opcode.DYNAMIC_SLICE:
                    continue
                reduced = reduced_behind(part)
                if reduced is None:
                    continue
                found = _scattering(reduced, part, grid, values)
                if isinstance(found, str):
                    context.missed(reduced, found)
                    continue
                if not context.apply(reduced, f"a reduce-scatter now, with %{part.name}"):
                    break
                context.count("reduce-scatters made")
                changed[computation] = None
                _scatter(reduced, part, found, channel_ids)
        repair_schedule(changed)
        return bool(changed)


def _scattering(
    reduced: Instruction, part: Instruction, grid: Grid, values: DeviceValues
) -> tuple[int, int, int] | str:
    """The dimension of the all-reduce to scatter, the size of a part and how many; or why not."""
    reason = why_not_alone(reduced, part)
    if reason is not None:
        return reason
    shards = shard_slice(part, values)
    if isinstance(shards, str):
        return shards
    groups = device_groups(reduced, grid)
    count = len(groups[0])
    if {len(group) for group in groups} != {count}:
        return "its replica groups have different sizes"
    if sorted(device for group in groups for device in group) != list(range(grid.device_count)):
        return "its replica groups do not hold each device once"
    whole = part.operands[0].shape.dimensions[shards.dimension]
    if shards.size != whole // count:
        return (
            f"%{part.name} keeps {shards.size} of {whole} elements, and there are {count} devices"
        )
    for group in groups:
        for rank, device in enumerate(group):
            if shards.offsets[device] != rank * shards.size:
                return (
                    f"device {device}, of rank {rank}, keeps the part from "
                    f"{shards.offsets[device]} on, not {rank * shards.size}"
                )
    dimension = _dimension_before(reduced, part, shards)
    if dimension is None or (part.operands[0] is not reduced and shards.size * count != whole):
        return f"%{part.operands[0].name} changes the dimension that is sliced"
    return dimension, shards.size, count


def _dimension_before(reduced: Instruction, part: Instruction, shards: ShardSlice) -> int | None:
    """The dimension of the all-reduce that a reshape hands on as the sliced one, if it does."""
    before, after = reduced.shape.dimensions, part.operands[0].shape.dimensions
    if part.operands[0] is reduced:
        return shards.dimension
    outer = prod(after[: shards.dimension])
    for dimension, size in enumerate(before):
        if size == after[shards.dimension] and prod(before[:dimension]) == outer:
            return dimension
    return None


def _scatter(
    reduced: Instruction,
    part: Instruction,
    scattering: tuple[int, int, int],
    channel_ids: Iterator[int],
) -> None:
    dimension, size, count = scattering
    parent, value = reduced.parent, reduced.operands[0]
    if size * count < value.shape.dimensions[dimension]:
        shape = with_dimension(value.shape, dimension, size * count)
        slices = ", ".join(f"[0:{limit}]" for limit in shape.dimensions)
        value = parent.add(Opcode.SLICE, shape, [value], attributes={"slice": f"{{{slices}}}"})
    attributes = attributes_for_another_value(reduced)
    if "channel_id" in attributes:
        attributes["channel_id"] = str(next(channel_ids))
    result = parent.add(
        Opcode.REDUCE_SCATTER,
        with_dimension(reduced.shape, dimension, size),
        [value],
        attributes={**attributes, "dimensions": format_ints((dimension,))},
        called=reduced.called,
    )
    reshape = part.operands[0]
    if reshape is not reduced:
        result = parent.add(Opcode.RESHAPE, part.shape, [result])
    replace_instruction(part, result)
    if reshape is not reduced:
        parent.remove(reshape)
    parent.remove(reduced)
