"""The devices that run a collective together: what its numbers stand for on a grid of devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.typed import channel_of
from hloopt.ir.attributes.values import parse_int_lists
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode, replica_groups
from hloopt.ir.devices.grid import Grid
from hloopt.ir.devices.transfers import PAIRS
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import PERMUTING, Opcode


def members(mode: CollectiveMode, grid: Grid) -> tuple[str, range]:
    """The devices that a collective's numbers stand for, and the range of the numbers."""
    match mode:
        case CollectiveMode.CROSS_PARTITION:
            return "partition", range(grid.partitions)
        case CollectiveMode.FLATTENED_ID:
            return "device", range(grid.device_count)
        case CollectiveMode.CROSS_REPLICA | CollectiveMode.CROSS_REPLICA_AND_PARTITION:
            return "replica", range(grid.replicas)


def devices_of_member(number: int, mode: CollectiveMode, grid: Grid) -> range:
    """The devices that are a partition in any replica, or a replica's in any partition."""
    if mode is CollectiveMode.CROSS_PARTITION:
        return range(number, number + grid.device_count, grid.partitions)
    return range(number * grid.partitions, (number + 1) * grid.partitions)


def devices_of_group(
    group: tuple[int, ...], mode: CollectiveMode, grid: Grid
) -> Iterator[tuple[int, ...]]:
    """The groups of devices that one group of numbers stands for. O(devices)."""
    if mode is CollectiveMode.FLATTENED_ID:
        yield group
    elif mode is CollectiveMode.CROSS_REPLICA_AND_PARTITION:
        yield tuple(d for member in group for d in devices_of_member(member, mode, grid))
    else:
        yield from zip(*(devices_of_member(m, mode, grid) for m in group), strict=True)


def transfer_mode(transfer: Instruction, grid: Grid) -> CollectiveMode:
    """The devices in the pairs of a send or recv, which are not numbered as with collectives.

    They are partitions if there are several, else replicas; with several of both, those of a
    positive channel are partitions.
    """
    is_across = grid.partitions > 1 and (grid.replicas == 1 or (channel_of(transfer) or 0) > 0)
    return CollectiveMode.CROSS_PARTITION if is_across else CollectiveMode.CROSS_REPLICA


def connected(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The devices that pairs connect, directly or by way of others. O(pairs · log(pairs))."""
    group_of: dict[int, list[int]] = {}
    for a, b in pairs:
        join(group_of, a, b)
    return list({id(group): tuple(sorted(group)) for group in group_of.values()}.values())


def join(group_of: dict[int, list[int]], a: int, b: int) -> None:
    """Put two devices, and what each is in a group with, into one. O(smaller group)."""
    small, large = sorted((group_of.setdefault(device, [device]) for device in (a, b)), key=len)
    if small is not large:
        large += small
        for device in small:
            group_of[device] = large


def device_groups(collective: Instruction, grid: Grid) -> list[tuple[int, ...]]:
    """The groups of devices that meet in a collective, send or recv, as numbers of devices.

    Of a permute or transfer these are the devices that its pairs connect. Numbers are not
    checked. O(devices), of which a formula may name any number: see `group_sizes`.
    """
    if collective.opcode in (Opcode.SEND, Opcode.RECV):
        mode = transfer_mode(collective, grid)
        pairs = parse_int_lists(frontend_attribute(collective, PAIRS) or "{}")
    elif collective.opcode in PERMUTING:
        mode = collective_mode(collective)
        pairs = parse_int_lists(collective.attributes.get("source_target_pairs", "{}"))
    else:
        mode = collective_mode(collective)
        groups = replica_groups(collective).lists()
        return [
            devices
            for group in groups or (tuple(members(mode, grid)[1]),)
            for devices in devices_of_group(group, mode, grid)
        ]
    return connected(
        (devices[0], devices[1]) for pair in pairs for devices in devices_of_group(pair, mode, grid)
    )


def group_sizes(collective: Instruction, grid: Grid) -> set[int]:
    """The number of devices that meet in the groups of a collective, send or recv: the different
    numbers.

    Empty for pairs that connect none. O(groups that are listed, or pairs).
    """
    if collective.opcode in PERMUTING or collective.opcode in (Opcode.SEND, Opcode.RECV):
        return set(map(len, device_groups(collective, grid)))
    mode = collective_mode(collective)
    groups = replica_groups(collective)
    sizes = set(map(len, groups.explicit)) or {groups.group_size or len(members(mode, grid)[1])}
    each = grid.partitions if mode is CollectiveMode.CROSS_REPLICA_AND_PARTITION else 1
    return {size * each for size in sizes}
