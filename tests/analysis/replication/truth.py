"""What the replication analysis says, held against a run of the program on all its devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from hloopt.analysis.replication import ALL, NONE, Axis, ReplicationAnalysis
from hloopt.equivalence import RunSettings
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.values import Value
from hloopt.ir import Instruction, Module
from hloopt.ir.devices.device_counts import device_counts

SETTINGS = RunSettings(steps=10_000_000, memory=1 << 28)


class Truth(NamedTuple):
    """What came of the claims about one module."""

    wrong: list[str]
    """A sentence for each claim that a run shows to be false."""
    checked: int
    """The number of claims about an array that were held against a run."""


def check_claims(module: Module, seed: int, settings: RunSettings = SETTINGS) -> Truth:
    """Run the module and compare what all analyses of it say are equal. Raises RunError."""
    counts = device_counts(module)
    analyses = [
        ReplicationAnalysis(
            module,
            cross_partition_spmd=axis is Axis.PARTITIONS,
            partial_replication=partial,
            device_counts=counts,
        )
        for axis, count in zip(Axis, counts, strict=True)
        for partial in (False, True)
        if count > 1
    ]
    placement = settings.place(module)
    devices = placement.devices
    seen: defaultdict[Instruction, defaultdict[Device, list[list[bytes]]]]
    seen = defaultdict(lambda: defaultdict(list))

    def observe(device: Device, instruction: Instruction, value: Value) -> None:
        seen[instruction][device].append(list(_leaves(value)))

    settings.run_made_up(placement, seed, observe)
    wrong: list[str] = []
    checked = 0
    for analysis in analyses:
        for instruction, runs in seen.items():
            for group, leaf in _claims(analysis, instruction, devices):
                checked += 1
                # A loop's condition may be tried more often on some devices.
                together = zip(*(runs[device] for device in group), strict=False)
                if any(len({run[leaf] for run in same_time}) > 1 for same_time in together):
                    numbers = ", ".join(str(device.number) for device in group)
                    wrong.append(
                        f"%{instruction.name}, leaf {leaf}: on devices {numbers}, "
                        f"compared by {analysis.axis} (seed {seed})"
                    )
    return Truth(wrong, checked)


def _claims(
    analysis: ReplicationAnalysis, instruction: Instruction, devices: Sequence[Device]
) -> Iterator[tuple[list[Device], int]]:
    """Groups of devices that have the same leaf of an instruction, as the analysis says."""
    for leaf, agreement in enumerate(analysis.agreements(instruction) or ()):
        if agreement is NONE:
            continue
        together: defaultdict[tuple[int, int], list[Device]] = defaultdict(list)
        for device in devices:
            number, position = device.replica, device.partition
            if analysis.axis is Axis.PARTITIONS:
                number, position = position, number
            root = 0
            if agreement is not ALL:
                entry = agreement.entries[position % len(agreement.entries)]
                root = entry.get(number, number)
            together[position, root].append(device)
        yield from ((group, leaf) for group in together.values() if len(group) > 1)


def _leaves(value: Value) -> Iterator[bytes]:
    """What stands for the contents of each leaf of a value, tokens included."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, tuple):
            stack += reversed(part)
        elif part is None:
            yield b""
        else:
            yield blake2b(part.tobytes(), digest_size=16).digest()
