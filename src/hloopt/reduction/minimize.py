"""Delta debugging: the most parts of a module that can go while it still shows the failure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

Attempt = Callable[[Sequence[Sequence[Hashable]]], int | None]
"""Tries groups of parts one by one until one can go; its number, or None."""


def remove_parts(
    parts: Callable[[], Sequence[Hashable]], attempt: Attempt, *, one_by_one: bool = False
) -> bool:
    """Remove groups of parts, halves first, then ever smaller ones down to single parts.

    `parts` are those of the module as it is after the groups that went so far. Where k parts have
    to stay, that is O(k log n) attempts. `one_by_one`: single parts only, and anew after each.
    Returns whether any went.
    """
    if one_by_one:
        return _remove_single(parts, attempt)
    pending = list(parts())
    size = len(pending)
    has_removed = False
    while pending:
        groups = [pending[start : start + size] for start in range(0, len(pending), size)]
        left: list[Hashable] = []
        tried = 0
        while tried < len(groups):
            gone = attempt(groups[tried:])
            failed = groups[tried:] if gone is None else groups[tried : tried + gone]
            left += [part for group in failed for part in group]
            if gone is None:
                break
            has_removed = True
            tried += gone + 1
            groups[tried:] = _present(groups[tried:], parts())
        if size == 1:
            break
        present = {*parts()} if has_removed else {*left}
        pending = [part for part in left if part in present]
        size = max(1, min(size, len(pending)) // 2)
    return has_removed


def _present(groups: list[list[Hashable]], parts: Sequence[Hashable]) -> list[list[Hashable]]:
    """The groups without what went along with others."""
    present = {*parts}
    kept = ([part for part in group if part in present] for group in groups)
    return [group for group in kept if group]


def _remove_single(parts: Callable[[], Sequence[Hashable]], attempt: Attempt) -> bool:
    has_removed = False
    while attempt([[part] for part in parts()]) is not None:
        has_removed = True
    return has_removed
