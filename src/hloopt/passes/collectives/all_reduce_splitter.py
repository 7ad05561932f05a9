"""Split an all-reduce of which groups of devices keep the same part in two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hloopt.analysis.device_values import DeviceValues
from hloopt.ir.attributes.values import format_int_lists
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.collective_mode import (
    CollectiveMode,
    collective_mode,
    participants_key,
    replica_groups,
)
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.collectives.shards import ShardSlice, shard_slice, why_not_alone
from hloopt.passes.rewriting.replace import forget_value, hand_value_on

_Groups = list[tuple[int, ...]]
_Grouping = frozenset[frozenset[int]]


@register(
    "all-reduce-splitter",
    preserves="rounding",
    xla=XlaPass(
        "gpu::AllReduceSplitter", "xla/backends/gpu/transforms/collectives/all_reduce_splitter.h"
    ),
)
class AllReduceSplitter(ModulePass):
    """Split an all-reduce and the dynamic-slice of its result in two all-reduces around the slice.

    Where several devices keep the same part of a sum over all of them, as in data parallelism
    with parameters that are sharded within each host, the sum can be taken first among devices
    that keep different parts, then among those that keep the same. `reduce-scatter-creator` makes a
    reduce-scatter of the first all-reduce and the slice. As in XLA that is done where the
    computation has another all-reduce with the groups of the first one, and for collectives with
    global device ids. Asked of XLA:GPU's compiler: groups, channels and that condition. XLA does
    so only for one group of all partitions, and parts that make up the whole. Linear in the
    module's size, and O(devices) for each index of a slice.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        grid = device_counts(module)
        values = DeviceValues(grid)
        channel_ids = unused_channel_ids(module)
        changed: dict[Computation, None] = {}
        for computation in module.computations_with(Opcode.ALL_REDUCE):
            groupings = _groupings(computation)
            if len(groupings) < 2:
                continue
            for part in post_order(computation):
                if part.opcode is not Opcode.DYNAMIC_SLICE:
                    continue
                reduced = part.operands[0]
                if reduced.opcode is not Opcode.ALL_REDUCE:
                    continue
                found = _split_groups(reduced, part, grid, values, groupings)
                if isinstance(found, str):
                    context.missed(reduced, found)
                    continue
                if not context.apply(reduced, f"split in two around %{part.name}"):
                    break
                context.count("all-reduces split")
                changed[computation] = None
                _split(reduced, part, found, channel_ids)
        repair_schedule(changed)
        return bool(changed)


def _groupings(computation: Computation) -> set[_Grouping]:
    """The replica groups of all-reduces with global device ids. O(devices) for each new text."""
    reduces = [i for i in computation.instructions if i.opcode is Opcode.ALL_REDUCE]
    return {
        _grouping(replica_groups(reduce).lists())
        for reduce in {participants_key(reduce): reduce for reduce in reduces}.values()
        if collective_mode(reduce) is CollectiveMode.FLATTENED_ID
        and replica_groups(reduce).named_count <= MOST_DEVICES
    }


def _grouping(groups: Iterable[Iterable[int]]) -> _Grouping:
    """Groups without an order, which is nothing to an all-reduce."""
    return frozenset(map(frozenset, groups))


def _split_groups(
    reduced: Instruction,
    part: Instruction,
    grid: Grid,
    values: DeviceValues,
    groupings: set[_Grouping],
) -> tuple[_Groups, _Groups] | str:
    """The groups before and after the slice, or why the all-reduce stays whole."""
    reason = why_not_alone(reduced, part)
    if reason is not None:
        return reason
    if collective_mode(reduced) is not CollectiveMode.FLATTENED_ID:
        return "its groups are no global device ids"
    shards = shard_slice(part, values)
    if isinstance(shards, str):
        return shards
    first: _Groups = []
    second: _Groups = []
    for group in device_groups(reduced, grid):
        rows = _rows(group, shards)
        if isinstance(rows, str):
            return rows
        first += rows
        second += zip(*rows, strict=True)
    if _grouping(first) not in groupings:
        return f"no other all-reduce has the groups {format_int_lists(first)}"
    return first, second


def _rows(group: tuple[int, ...], shards: ShardSlice) -> _Groups | str:
    """The devices of a group in rows that keep each part once, in the order of the parts."""
    keepers: dict[int, list[int]] = {}
    for device in sorted(group):
        keepers.setdefault(shards.offsets[device], []).append(device)
    columns = [keepers[offset] for offset in sorted(keepers)]
    if len({len(column) for column in columns}) > 1:
        return "some parts are kept by more devices than others"
    if len(columns) in (1, len(group)):
        return "all devices keep the same part" if len(columns) == 1 else "each has its own part"
    return list(zip(*columns, strict=True))


def _split(
    reduced: Instruction,
    part: Instruction,
    groups: tuple[_Groups, _Groups],
    channel_ids: Iterator[int],
) -> None:
    first, second = groups
    forget_value(reduced)
    reduced.set_attribute("replica_groups", format_int_lists(first))
    reduced.set_attribute("channel_id", str(next(channel_ids)))
    again = part.parent.add(
        Opcode.ALL_REDUCE,
        part.shape,
        [part],
        name=reduced.name,
        attributes={
            **reduced.attributes,
            "replica_groups": format_int_lists(second),
            "channel_id": str(next(channel_ids)),
        },
        called=reduced.called,
    )
    hand_value_on(part, again)
