"""The devices that have the same value: the lattice of the replication analysis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

Groups = Sequence[Sequence[int]]
"""Sets of devices, which are replicas or partitions."""
_Entry = Mapping[int, int]
"""The smallest device of its set for each device that has the same value as another one."""


class Axis(StrEnum):
    """The axis on which devices differ; the position on the other axis is the same."""

    REPLICAS = "replicas"
    PARTITIONS = "partitions"


def _roots(groups: Groups) -> _Entry:
    return {device: min(group) for group in groups if len(group) > 1 for device in group}


def _common(entries: Sequence[_Entry]) -> _Entry:
    """The sets of devices that are together in every entry."""
    first, *others = entries
    together: dict[tuple[int, ...], list[int]] = {}
    for device, root in first.items():
        if all(device in entry for entry in others):
            key = (root, *[entry[device] for entry in others])
            together.setdefault(key, []).append(device)
    return _roots(list(together.values()))


def _sets(entry: _Entry) -> tuple[tuple[int, ...], ...]:
    found: dict[int, list[int]] = {}
    for device in sorted(entry):
        found.setdefault(entry[device], []).append(device)
    return tuple(map(tuple, found.values()))


class Agreement:
    """The devices that surely have the same value; equal ones of a lattice are one object.

    Devices are those along one axis, replicas or partitions, and what is said holds at each
    position on the other axis: by `entries`, one for each position, or a single one for all.
    """

    __slots__ = ("entries", "sets")

    def __init__(self, entries: tuple[_Entry, ...] = ()) -> None:
        self.entries = entries
        self.sets = _sets(_common(entries)) if entries else ()
        """The sets of two devices and more that have the same at every position; of ALL none."""

    def holds(self, groups: Groups) -> bool:
        """Whether within each group all devices have the same. O(devices of the groups)."""
        if self is ALL or self is NONE:
            return self is ALL
        return all(
            entry.get(device, device) == entry.get(group[0], group[0])
            for group in groups
            for entry in self.entries
            for device in group
        )


ALL = Agreement()
"""The same value on all devices."""
NONE = Agreement()
"""Nothing is known."""


class Lattice:
    """The agreements of `device_count` devices, ALL at the top and NONE at the bottom."""

    def __init__(self, device_count: int) -> None:
        self._device_count = device_count
        self._known: dict[tuple[tuple[tuple[int, int], ...], ...], Agreement] = {}
        self._merged: dict[tuple[Agreement, Agreement], Agreement] = {}

    def partial(self, positions: Iterable[Groups]) -> Agreement:
        """The agreement within groups: given for each position, or once for all of them."""
        return self._of([_roots(groups) for groups in positions])

    def merge(self, a: Agreement, b: Agreement) -> Agreement:
        """The agreement of a value that depends on two values. O(1) but once."""
        if a is b or b is ALL:
            return a
        if a is ALL:
            return b
        if a is NONE or b is NONE:
            return NONE
        merged = self._merged.get((a, b))
        if merged is None:
            merged = self._merged[a, b] = self._intersection(a, b)
        return merged

    def at_all_positions(self, agreement: Agreement) -> Agreement:
        """The agreement over all positions: devices agree where they agree at each."""
        if len(agreement.entries) < 2:
            return agreement
        return self._of([_common(agreement.entries)])

    def _intersection(self, a: Agreement, b: Agreement) -> Agreement:
        length = max(len(a.entries), len(b.entries))
        ours, theirs = (x.entries * (length // len(x.entries)) for x in (a, b))
        return self._of([_common(pair) for pair in zip(ours, theirs, strict=True)])

    def _of(self, entries: list[_Entry]) -> Agreement:
        if not any(entries):
            return NONE
        if all(self._is_everyone(entry) for entry in entries):
            return ALL
        key = tuple(tuple(sorted(entry.items())) for entry in entries)
        if len(set(key)) == 1:
            key, entries = key[:1], entries[:1]
        agreement = self._known.get(key)
        if agreement is None:
            agreement = self._known[key] = Agreement(tuple(entries))
        return agreement

    def _is_everyone(self, entry: _Entry) -> bool:
        return len(entry) == self._device_count and len(set(entry.values())) == 1
