"""Whether a module fits into the memory of a device."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.memory.statistics import MemoryStatistics


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """So many bytes are there."""

    size: int
    source: str
    """The source of the limit: a target's title, or the option."""
    space: int = 0
    """The memory space it is of; 0 is main memory."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The memory a module needs on the device, beside a limit."""

    needed: int
    limit: MemoryLimit
    space_name: str = "default"
    """The memory space, in messages."""

    @property
    def fits(self) -> bool:
        return self.needed <= self.limit.size

    @property
    def missing(self) -> int:
        """Bytes beyond the limit; 0 for what fits."""
        return max(0, self.needed - self.limit.size)


def needed_bytes(statistics: MemoryStatistics) -> int:
    """Arguments + outputs - aliased + temporaries as they are packed + constants, on the device.

    Neither the code nor what runtime and driver keep for themselves is in it.
    """
    return statistics.total + statistics.constant
