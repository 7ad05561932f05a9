"""Rules about what all devices compute or hold alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.inventory.arrays import arrays_of
from hloopt.checks.doubts import not_partitioned
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Impact, Severity
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.shapes.leaf_annotations import is_replicated
from hloopt.options import Bytes, Share, option
from hloopt.reports.console.units import human_bytes, human_share
from hloopt.reports.replication.findings import agreement_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedOptions(RuleOptions):
    """Options of `replicated-compute`."""

    share: Share = option(Share(0.05), "the least share of all flops that is worth a finding")


@rule("HLL201", "replicated-compute", not_partitioned, options=ReplicatedOptions)
def replicated_compute(view: View, options: ReplicatedOptions) -> Iterator[Finding]:
    """Work that devices do alike, groups of alike instructions together. O(instructions)."""
    instructions = {each.name: each for each in view.subject.module.instructions()}
    for report in view.subject.replication:
        for group in report.groups:
            share = group.flops / max(report.total.flops, 1)
            if not group.flops or share < options.share:
                continue
            devices = agreement_text(group.agreement)
            who = f"all {report.axis.value}" if devices == "all" else f"each of {devices}"
            names = [instructions[name] for name in group.names]
            yield Finding(
                f"{who} compute {group.opcode} {group.shape} alike, {human_share(share)} of all "
                f"flops: {counted(len(names), 'instruction')}",
                names[0],
                Impact(moved=group.bytes_accessed),
                related=tuple(names[1:]),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedArgumentOptions(RuleOptions):
    """Options of `replicated-argument`."""

    size: Bytes = option(256 * 1024**2, "the least bytes of an argument")


@rule(
    *("HLL202", "replicated-argument"),
    options=ReplicatedArgumentOptions,
    severity=Severity.NOTE,
)
def replicated_argument(view: View, options: ReplicatedArgumentOptions) -> Iterator[Finding]:
    """Large arguments that every device holds, where others of that size are sharded.

    O(arguments). Where only the batch is sharded, replicated parameters are meant.
    """
    arrays = arrays_of(view.subject.module.entry.parameters)
    devices = view.subject.stage.devices
    sharded = [each for each in arrays if each.sharding and not is_replicated(each.sharding)]
    if devices <= 1 or not any(each.size * devices >= options.size for each in sharded):
        return
    for array in arrays:
        if array.sharding and is_replicated(array.sharding) and array.size >= options.size:
            yield Finding(
                f"every one of {counted(devices, 'device')} holds all {human_bytes(array.size)} of "
                f"argument {array.number}, %{array.instruction.name}, and others are sharded",
                array.instruction,
                Impact(memory=array.size - array.size // devices),
            )
