"""Which of the collectives that could be combined are combined with which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hloopt.ir.instruction import Instruction
from hloopt.ir.ordering import dependencies


@dataclass(slots=True, eq=False)
class Group:
    """Collectives that can become one, in the order they are found."""

    members: list[Instruction] = field(default_factory=list)
    byte_count: int = 0
    closed_because: str = ""
    """Why the next collective is not in it; empty for the last group."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a combined collective may be."""

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
            current.closed_because = _why_close(
                current, instruction, size, limits, depends=after == len(groups)
            )
            if current.closed_because:
                current = Group()
                groups.append(current)
            current.members.append(instruction)
            current.byte_count += size
            after = len(groups)
        if after:
            latest[instruction] = after
    return groups


def _why_close(
    current: Group, following: Instruction, size: int, limits: Limits, *, depends: bool
) -> str:
    """Why a group ends before the collective that follows; empty where it takes it in."""
    if not current.members:
        return ""
    if depends:
        return f"%{following.name}, the next one like it, depends on it"
    if len(current.members) >= limits.count:
        return f"combine_threshold_count is {limits.count:,}"
    if current.byte_count + size > limits.byte_count:
        return (
            f"with %{following.name}, the next one like it, it would have "
            f"{current.byte_count + size:,} bytes, and combine_threshold_in_bytes is "
            f"{limits.byte_count:,}"
        )
    return ""
