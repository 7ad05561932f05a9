"""Rules about collectives that exchange nothing."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.inventory.collectives import Collective
from hloopt.checks.doubts import not_partitioned
from hloopt.checks.lint.costs import collective_impact, collectives, runs_text
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.view import View
from hloopt.ir.attributes.typed import pairs_of
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode, replica_groups
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import PERMUTING, Opcode

_COUNTS = frozenset(("replica_count", "num_partitions"))
"""Attributes of the module's header that count devices."""


@rule("HLL101", "degenerate-collective", not_partitioned)
def degenerate_collective(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Collectives in which no device sends anything to another. O(instructions + groups)."""
    for each in collectives(view):
        instruction = each.instruction
        reason = _reason(each)
        if reason and _names_devices(instruction):
            yield Finding(
                f"%{instruction.name} {reason}: no device sends anything"
                f"{runs_text(view, instruction)}",
                instruction,
                collective_impact(view, each),
            )


def _reason(collective: Collective) -> str:
    """The reason why no device sends anything, as a predicate; empty where some do."""
    if collective.kind is Opcode.COLLECTIVE_PERMUTE:
        pairs = pairs_of(collective.instruction)
        if any(source != target for source, target in pairs):
            return ""
        return (
            "has source-target pairs of one device each" if pairs else "has no source-target pairs"
        )
    return "" if collective.group_size > 1 else "has replica groups of one device each"


def _names_devices(collective: Instruction) -> bool:
    """Whether it is known which devices meet: text that no compiler wrote often leaves out how many
    there are."""
    if collective.opcode in PERMUTING:
        return True
    is_across = collective_mode(collective) is CollectiveMode.CROSS_REPLICA_AND_PARTITION
    if replica_groups(collective).group_count and not is_across:
        return True
    return not _COUNTS.isdisjoint(collective.parent.module.attributes)
