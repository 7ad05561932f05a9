"""The devices that a program runs on."""

from __future__ import annotations

from typing import NamedTuple


class Grid(NamedTuple):
    """Each replica runs the program on each partition.

    A device's number is replica times partitions plus partition.
    """

    replicas: int
    partitions: int

    @property
    def device_count(self) -> int:
        return self.replicas * self.partitions
