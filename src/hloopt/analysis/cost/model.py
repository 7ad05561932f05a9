"""The cost of one run of an instruction, or of a whole computation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Arithmetic and memory traffic, counted as XLA's HloCostAnalysis counts them.

    Immutable and shared between instructions alike.
    """

    flops: int = 0
    """Operations on elements, whatever their type; a fused multiply-add is two."""
    transcendentals: int = 0
    """exp, log, tanh and the like, in none of the flops."""
    bytes_read: int = 0
    bytes_written: int = 0
    unfused_bytes: int = 0
    """The bytes accessed if what is in fusions ran instruction by instruction."""
    operand_bytes: tuple[int, ...] = ()
    """Bytes read of each operand; they sum to `bytes_read`. Empty for an instruction that runs
    computations."""

    @property
    def bytes_accessed(self) -> int:
        """Bytes that move between memory and the processor, either way."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Flops and transcendentals per byte; 0 where nothing moves."""
        moved = self.bytes_accessed
        return (self.flops + self.transcendentals) / moved if moved > 0 else 0.0

    def times(self, count: int) -> Cost:
        """The cost of that many runs."""
        if count == 1:
            return self
        return Cost(
            self.flops * count,
            self.transcendentals * count,
            self.bytes_read * count,
            self.bytes_written * count,
            self.unfused_bytes * count,
        )

    @staticmethod
    def total(costs: Iterable[Cost]) -> Cost:
        """The cost of all of these, one after another. O(costs)."""
        flops = transcendentals = read = written = unfused = 0
        for cost in costs:
            flops += cost.flops
            transcendentals += cost.transcendentals
            read += cost.bytes_read
            written += cost.bytes_written
            unfused += cost.unfused_bytes
        return Cost(flops, transcendentals, read, written, unfused)


NO_COST = Cost()


def moving(
    operand_bytes: tuple[int, ...], written: int, *, flops: int = 0, transcendentals: int = 0
) -> Cost:
    """The cost of an instruction that reads so much of each operand."""
    read = sum(operand_bytes)
    return Cost(flops, transcendentals, read, written, read + written, operand_bytes)
