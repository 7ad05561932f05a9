"""Meetings: the groups of devices that run a collective together, and who sends to whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hloopt.diagnostics import counted
from hloopt.interpreter.errors import cannot_run
from hloopt.interpreter.evaluation import Device
from hloopt.ir.attributes.typed import channel_of
from hloopt.ir.attributes.values import (
    parse_frontend_attributes,
    parse_int_lists,
)
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.devices.collective_devices import (
    connected,
    devices_of_group,
    devices_of_member,
    members,
    transfer_mode,
)
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode, replica_groups
from hloopt.ir.devices.grid import Grid
from hloopt.ir.devices.transfers import PAIRS
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import PERMUTING, Opcode


def grid_of(devices: Sequence[Device]) -> Grid:
    """The grid that these devices, all of a program, make up."""
    return Grid(
        max(device.replica for device in devices) + 1,
        max(device.partition for device in devices) + 1,
    )


class Incoming(NamedTuple):
    """The data a device receives in a collective-permute."""

    source: int
    """The device that sends."""
    pair: int
    """The source-target pair that says so."""


class Parties(NamedTuple):
    """The groups or pairs of one collective. All numbers are those of devices."""

    group_of: Mapping[int, tuple[int, ...]]
    """The devices that wait for each other, by each of them, in the order of their ranks."""
    incoming: Mapping[int, Sequence[Incoming]]
    """Of a permute: what each target gets."""


def parties_of(instruction: Instruction, grid: Grid) -> Parties:
    """The devices that work together in a collective. Devices that it does not name are in no
    group.

    Raises RunError where it names others than there are, or one of them twice. O(devices).
    """
    incoming: defaultdict[int, list[Incoming]] = defaultdict(list)
    if instruction.opcode in PERMUTING:
        text = instruction.attributes.get("source_target_pairs", "{}")
        pairs = list(_pairs(instruction, text, collective_mode(instruction), grid))
        for number, source, target in pairs:
            incoming[target].append(Incoming(source, number))
        alone = [(device, device) for device in range(grid.device_count)]
        groups = connected([*((source, target) for _, source, target in pairs), *alone])
    else:
        groups = list(_groups(instruction, grid))
    group_of = {device: group for group in groups for device in group}
    if len(group_of) < sum(map(len, groups)):
        raise cannot_run(instruction, "its replica groups name a device twice")
    return Parties(group_of, incoming)


def _groups(instruction: Instruction, grid: Grid) -> Iterator[tuple[int, ...]]:
    mode = collective_mode(instruction)
    groups = replica_groups(instruction)
    if groups.named_count > MOST_DEVICES:  # of a formula, which may stand for any number
        raise cannot_run(
            instruction,
            f"it names {counted(groups.named_count, 'device')}, and the program runs on "
            f"{grid.device_count}",
        )
    for group in groups.lists() or (tuple(members(mode, grid)[1]),):
        _check_range(instruction, group, mode, grid)
        yield from devices_of_group(group, mode, grid)


def _check_range(
    instruction: Instruction, numbers: Iterable[int], mode: CollectiveMode, grid: Grid
) -> None:
    what, known = members(mode, grid)
    for number in numbers:
        if number not in known:
            count = f"{len(known)} {what}{'s' if len(known) > 1 else ''}"
            raise cannot_run(
                instruction, f"it names {what} {number}, and the program runs on {count}"
            )


# -- pairs of a source and a target ---------------------------------------------------------------


def _pairs(
    instruction: Instruction, text: str, mode: CollectiveMode, grid: Grid
) -> Iterator[tuple[int, int, int]]:
    """The pairs of partitions or replicas as pairs of devices, each with its place in the list."""
    for number, pair in enumerate(parse_int_lists(text)):
        if len(pair) != 2:
            what = "its source-target pairs hold something that is not a pair"
            raise cannot_run(instruction, what)
        if pair[1] not in members(mode, grid)[1]:
            continue  # nobody asks for it, which XLA takes too
        _check_range(instruction, pair, mode, grid)
        source, target = (devices_of_member(member, mode, grid) for member in pair)
        yield from ((number, s, t) for s, t in zip(source, target, strict=True))


class Peers(NamedTuple):
    """Whom a send or recv of each device is for; a device that is not there takes no part."""

    target_of: Mapping[int, int]
    source_of: Mapping[int, int]


def peers_of(transfer: Instruction, grid: Grid) -> Peers:
    """The sender and receiver of each send or recv. Without a list of pairs each device to
    itself."""
    text = _pairs_text(transfer)
    if text is None:
        same = {device: device for device in range(grid.device_count)}
        return Peers(same, same)
    pairs = list(_pairs(transfer, text, transfer_mode(transfer, grid), grid))
    peers = Peers({s: t for _, s, t in pairs}, {t: s for _, s, t in pairs})
    if len(peers.target_of) < len(pairs) or len(peers.source_of) < len(pairs):
        raise cannot_run(transfer, "a device sends or receives more than once")
    return peers


def channels_of(module: Module) -> dict[Instruction, Hashable]:
    """The key that ties sends and recvs together, by each of them. O(instructions of the module).

    That is the channel. One that only sends have, or only recvs, does not count, as on XLA's GPUs:
    then it is the list of pairs.
    """
    found: dict[Opcode, set[int | None]] = {Opcode.SEND: set(), Opcode.RECV: set()}
    transfers = [
        instruction for instruction in module.instructions() if instruction.opcode in found
    ]
    for transfer in transfers:
        found[transfer.opcode].add(channel_of(transfer))
    shared = found[Opcode.SEND] & found[Opcode.RECV]
    return {
        transfer: channel if channel in shared else ("pairs", _pairs_text(transfer))
        for transfer in transfers
        for channel in [channel_of(transfer)]
    }


def _pairs_text(transfer: Instruction) -> str | None:
    text = transfer.attributes.get("frontend_attributes", "{}")
    return parse_frontend_attributes(text).get(PAIRS)
