"""The choice of groups among collectives that could be combined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hloopt.diagnostics import counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.ordering import dependencies


@dataclass(slots=True, eq=False)
class Group:
    """Collectives that can become one, in the order they are found."""

    members: list[Instruction] = field(default_factory=list)
    byte_count: int = 0
    why_alone: str = ""
    """The reason that its first member joins none before, or else its last one none after."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds on the size of a combined collective."""

    byte_count: int
    count: int


def group(
    order: Iterable[Instruction], sizes: Mapping[Instruction, int], limits: Limits
) -> list[Group]:
    """Put the collectives that `sizes` gives bytes for into groups, each as long as it can be.

    `order` has operands before users. A group takes collectives in this order until the next one
    would exceed a limit, or depends on one of the group; then the next group begins. So members
    of a group never depend on each other, and groups only on earlier ones: they stay independent
    whichever of them are combined. Collectives of more bytes than the limit are in no group.
    O(edges).
    """
    groups = [Group()]
    latest: dict[Instruction, int] = {}  # by instruction: the last group something before it is in
    for instruction in order:
        after = max((latest.get(before, 0) for before in dependencies(instruction)), default=0)
        size = sizes.get(instruction)
        if size is not None and size <= limits.byte_count:
            current = groups[-1]
            reason = _why_end(current, size, limits, depends=after == len(groups))
            if reason:
                current.why_alone = current.why_alone or f"%{instruction.name}, the next, {reason}"
                current = Group(why_alone=f"it {reason}")
                groups.append(current)
            current.members.append(instruction)
            current.byte_count += size
            after = len(groups)
        if after:
            latest[instruction] = after
    return groups


def _why_end(current: Group, size: int, limits: Limits, *, depends: bool) -> str:
    """The reason why a group ends before the next collective; empty where it can join."""
    if not current.members:
        return ""
    if depends:
        return f"depends on %{current.members[-1].name} or others combined with that"
    if len(current.members) >= limits.count:
        return f"would be one too many for combine_threshold_count, {limits.count:,}"
    total = current.byte_count + size
    if total > limits.byte_count:
        return (
            f"would make {counted(total, 'byte')} of the combined one, and "
            "combine_threshold_in_bytes is "
            f"{limits.byte_count:,}"
        )
    return ""
