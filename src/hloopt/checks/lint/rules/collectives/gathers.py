"""Rules about collectives that bring data where it is not needed, or is already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.device_values import DeviceValues
from hloopt.analysis.inventory.collectives import Collective, Form
from hloopt.analysis.replication.groups import GroupReplication
from hloopt.checks.doubts import not_fused, not_partitioned
from hloopt.checks.lint.costs import collectives, exposed_seconds, runners, runs_text
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.rules.collectives.resharding import parts_of_devices
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.options import Bytes, Share, option
from hloopt.reports.console.units import human_bytes, some

_SLICING = frozenset((Opcode.SLICE, Opcode.DYNAMIC_SLICE))
_HANDING_ON = frozenset(
    (
        *(Opcode.BITCAST, Opcode.COPY, Opcode.RESHAPE, Opcode.TRANSPOSE),
        Opcode.GET_TUPLE_ELEMENT,
    )
)
"""Opcodes that read as much of their operand as is read of their result."""
_LATER_PARTS = frozenset((Opcode.ALL_GATHER_DONE, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE))
_COPYING = frozenset((Opcode.ALL_GATHER, Opcode.ALL_TO_ALL, Opcode.COLLECTIVE_BROADCAST))
"""Opcodes that a device could do alone if it had the data of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicedOptions(RuleOptions):
    """Options of `sliced-all-gather`."""

    share: Share = option(Share(0.5), "the least share of the result that nobody reads")
    size: Bytes = option(Bytes(1 << 20), "the fewest bytes of the result that nobody reads")


@rule("HLL105", "sliced-all-gather", not_fused, options=SlicedOptions)
def sliced_all_gather(view: View, options: SlicedOptions) -> Iterator[Finding]:
    """All-gathers of whose results only slices are read. O(instructions)."""
    values = DeviceValues(device_counts(view.subject.module))
    for each in collectives(view):
        if each.kind is not Opcode.ALL_GATHER or not each.wire:
            continue
        if parts_of_devices(each, values):
            continue  # HLL108 says what to do about these
        for runner in runners(each):
            value = _result(each.instruction if each.form is Form.FUSED else runner)
            whole, read = leaf_bytes(value.shape), _bytes_read(value)
            unread = whole - read
            if read and unread >= max(options.size, options.share * whole):
                yield Finding(
                    f"%{runner.name} gathers {human_bytes(whole)}, of which only slices are read, "
                    f"{human_bytes(read)}{runs_text(view, runner)}",
                    runner,
                    Impact(moved=each.wire * unread // whole * view.runs(runner).times),
                    related=tuple(value.users),
                )


def _result(gather: Instruction) -> Instruction:
    """The instruction that has the result: of a start its done."""
    value: Instruction | None = gather
    while value is not None:
        gather = value
        value = next((user for user in gather.users if user.opcode in _LATER_PARTS), None)
    return gather


def _bytes_read(value: Instruction) -> int:
    """The most bytes of a value that are read in one run of its computation. O(its readers)."""
    whole = leaf_bytes(value.shape)
    read = whole if value.is_root else 0
    for user in value.users:
        if read >= whole:
            break
        read += _bytes_read_by(user, value)
    return min(read, whole)


def _bytes_read_by(user: Instruction, value: Instruction) -> int:
    opcode = user.opcode
    if opcode in _SLICING:
        return leaf_bytes(user.shape)
    if opcode in _HANDING_ON:
        return _bytes_read(user)
    if opcode is Opcode.FUSION:
        parameters = user.called[0].parameters
        places = [i for i, operand in enumerate(user.operands) if operand is value]
        return sum(_bytes_read(parameters[place]) for place in places)
    return leaf_bytes(value.shape)


@rule("HLL106", "all-gather-of-replicated", not_partitioned)
def all_gather_of_replicated(view: View, options: RuleOptions) -> Iterator[Finding]:
    """All-gathers, all-to-alls and broadcasts of data that the devices of each group have alike.

    The replication analysis decides, along each axis at most once: see ReplicationAnalysis.
    """
    module = view.subject.module
    grid = device_counts(module)
    groups = GroupReplication(module, grid)
    for each in collectives(view):
        if each.kind not in _COPYING or not each.wire or not _has_devices(each, grid):
            continue
        for runner in runners(each):
            values = each.instruction.operands if each.form is Form.FUSED else runner.operands
            alike = [value for value in values if groups.holds(value, each.instruction)]
            if alike:
                yield _of_replicated(view, each, runner, alike)


def _has_devices(collective: Collective, grid: Grid) -> bool:
    """Whether there are as many devices as the groups name: replicas, partitions, or both."""
    match collective_mode(collective.instruction):
        case CollectiveMode.CROSS_REPLICA:
            return collective.group_size <= grid.replicas
        case CollectiveMode.CROSS_PARTITION:
            return collective.group_size <= grid.partitions
    return collective.group_size <= grid.device_count


def _of_replicated(
    view: View, collective: Collective, runner: Instruction, alike: list[Instruction]
) -> Finding:
    values = collective.instruction.operands
    whole = sum(leaf_bytes(value.shape) for value in values)
    part = sum(leaf_bytes(value.shape) for value in alike)
    runs = view.runs(runner).times
    seconds = exposed_seconds(view, runner) if len(alike) == len(values) else 0.0
    return Finding(
        f"%{runner.name} sends what all devices of a replica group have alike: "
        f"{some([f'%{value.name}' for value in alike])}{runs_text(view, runner)}",
        runner,
        Impact(seconds, collective.wire * part // whole * runs),
        related=tuple(alike),
    )
