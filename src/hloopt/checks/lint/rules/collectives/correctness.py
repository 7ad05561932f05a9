"""Rules about what devices agree on: channels, groups, sends and recvs."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.inventory.collectives import Collective
from hloopt.checks.doubts import not_partitioned
from hloopt.checks.lint.costs import collectives
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Severity
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import channel_of, has_host_transfer
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.collective_mode import replica_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import PERMUTING, Opcode


@rule("HLL109", "channel-shared", severity=Severity.NOTE)
def channel_shared(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Channels of collectives that differ in kind or groups. O(instructions)."""
    by_channel: dict[int, list[Collective]] = {}
    for each in collectives(view):
        channel = channel_of(each.instruction)
        if channel:
            by_channel.setdefault(channel, []).append(each)
    for channel, users in by_channel.items():
        first = users[0]
        other = next((user for user in users if _meets(user) != _meets(first)), None)
        if other is not None:
            yield Finding(
                f"%{first.instruction.name} and %{other.instruction.name} have channel {channel}, "
                f"and are {_differing(first, other)}: only their order tells them apart",
                first.instruction,
                related=tuple(user.instruction for user in users[1:]),
            )


def _meets(collective: Collective) -> tuple[object, ...]:
    """The kind and the devices of a collective: equal for all copies of it on one channel."""
    attributes = collective.instruction.attributes
    devices = attributes.get("source_target_pairs") or attributes.get("replica_groups", "{}")
    return collective.kind, devices.replace(" ", "")


def _differing(first: Collective, other: Collective) -> str:
    if first.kind is not other.kind:
        return f"one {first.kind.value} and one {other.kind.value}"
    return "between other devices"


@rule("HLL110", "unequal-groups")
def unequal_groups(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Collectives whose groups have several sizes, or leave devices out. O(groups)."""
    grid = device_counts(view.subject.module)
    for each in collectives(view):
        if each.kind in PERMUTING or not replica_groups(each.instruction).explicit:
            continue
        name = f"%{each.instruction.name}"
        if len(each.group_sizes) > 1:
            sizes = ", ".join(f"{size:,}" for size in sorted(each.group_sizes))
            yield Finding(
                f"the groups of {name} have {sizes} devices: the smaller ones wait for the largest",
                each.instruction,
            )
            continue
        left_out = grid.device_count - len(
            {d for g in device_groups(each.instruction, grid) for d in g}
        )
        if left_out > 0:
            words = counted(left_out, "device is", "devices are")
            yield Finding(f"{words} in no group of {name}", each.instruction)


@rule("HLL111", "unmatched-transfer", not_partitioned, severity=Severity.ERROR)
def unmatched_transfer(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Sends without a recv, recvs without a send, and orders that deadlock. O(instructions)."""
    transfers = [
        instruction
        for instruction in view.subject.module.instructions()
        if instruction.opcode in (Opcode.SEND, Opcode.RECV) and not has_host_transfer(instruction)
    ]
    channels = {opcode: _channels(transfers, opcode) for opcode in (Opcode.SEND, Opcode.RECV)}
    lonely = [each for each in transfers if channel_of(each) not in channels[_OTHER[each.opcode]]]
    for each in lonely:
        yield Finding(
            f"%{each.name} has channel {channel_of(each)}, and no {_OTHER[each.opcode].value} has: "
            "the devices wait for ever",
            each,
        )
    if transfers and not lonely:
        yield from _deadlocks(view, transfers)


_OTHER = {Opcode.SEND: Opcode.RECV, Opcode.RECV: Opcode.SEND}


def _channels(transfers: list[Instruction], opcode: Opcode) -> set[int | None]:
    return {channel_of(each) for each in transfers if each.opcode is opcode}


def _deadlocks(view: View, transfers: list[Instruction]) -> Iterator[Finding]:
    """The errors of the verifier with `verify_no_collective_deadlocks`; only schedules have any."""
    from hloopt.verifier.deadlocks import check_deadlocks
    from hloopt.verifier.options import ANY_TARGET, Setting

    module = view.subject.module
    setting = Setting(ANY_TARGET, module.replica_count, module.num_partitions)
    for error in check_deadlocks(module, transfers, setting):
        place = next((each for each in transfers if module.span_of(each) == error.span), None)
        yield Finding(error.message, place)
