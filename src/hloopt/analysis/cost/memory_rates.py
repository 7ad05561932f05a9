"""The time that bytes take, by the memory space they lie in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from hloopt.analysis.cost.model import Cost
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.ir import Instruction, Module
from hloopt.ir.opcode import STARTS
from hloopt.ir.shapes.layout import TPU_MEMORY_SPACES
from hloopt.ir.shapes.shape import Shape
from hloopt.targets import Target

_Moved: TypeAlias = tuple[Shape, float]
"""A value, and how many bytes of it are read or written."""


class MemoryRates:
    """The rates of a target's memories.

    Where a target has fast memories of its own, what lies there does not go to main memory. At the
    rate of the fast memory it takes its time, or none where that rate is not known. Host memory
    counts as main memory.
    """

    def __init__(self, target: Target) -> None:
        self.main = target.memory_bandwidth
        """Bytes per second."""
        known = target.space_bandwidths
        self._apart = {
            space: known.get(name)
            for space, name in TPU_MEMORY_SPACES.items()
            if name in target.spaces or name in known
        }
        self._shares: dict[Shape, tuple[float, float]] = {}
        self.without_rate: dict[str, None] = {}
        """The memories in which bytes took no time."""

    def is_apart(self, shape: Shape) -> bool:
        """Whether an array of a value does not lie in main memory. O(leaves)."""
        return any(
            leaf.is_array and leaf.layout.memory_space in self._apart for leaf in shape.leaves()
        )

    def of(self, instruction: Instruction, cost: Cost) -> float:
        """The seconds that the memory traffic of one run of an instruction takes. O(leaves)."""
        main, elsewhere = self._split(*_moved(instruction, cost))
        return main / self.main + elsewhere

    def main_seconds(self, instruction: Instruction, cost: Cost) -> float:
        """The part of it that is traffic of main memory. O(leaves)."""
        return self._split(*_moved(instruction, cost))[0] / self.main

    def seconds(self, moved: Iterable[_Moved]) -> float:
        """The seconds that it takes to read or write so many bytes of values. O(values)."""
        main, elsewhere = self._split(moved)
        return main / self.main + elsewhere

    def _split(self, moved: Iterable[_Moved], other: float = 0) -> tuple[float, float]:
        """The bytes in main memory, with `other` ones there, and the seconds of those elsewhere.

        Of a tuple, leaves take parts as they are large.
        """
        main, elsewhere = other, 0.0
        for shape, size in moved:
            share, rest = self._share(shape) if self._apart else (1, 0.0)
            main += size * share
            elsewhere += size * rest
        return main, elsewhere

    def _share(self, shape: Shape) -> tuple[float, float]:
        """The part of a value that is in main memory, and the seconds per byte for the rest."""
        known = self._shares.get(shape)
        if known is None:
            known = self._shares[shape] = self._new_share(shape)
        return known

    def _new_share(self, shape: Shape) -> tuple[float, float]:
        apart = [leaf for leaf in shape.leaves() if self.is_apart(leaf)]
        whole = leaf_bytes(shape)
        if not apart or not whole:
            return 1, 0.0
        seconds = 0.0
        for leaf in apart:
            space = leaf.layout.memory_space
            rate = self._apart[space]
            if rate is None:
                self.without_rate[TPU_MEMORY_SPACES[space]] = None
            else:
                seconds += leaf_bytes(leaf) / rate
        return 1 - sum(map(leaf_bytes, apart)) / whole, seconds / whole


def _moved(instruction: Instruction, cost: Cost) -> tuple[list[_Moved], int]:
    """The operands and the result of an instruction, and the bytes that are of neither."""
    shapes = [operand.shape for operand in instruction.operands]
    moved: list[_Moved] = [*zip(shapes, cost.operand_bytes, strict=False)]
    moved.append((instruction.shape, cost.bytes_written))
    return moved, cost.bytes_read - sum(cost.operand_bytes)


def unrated_note(module: Module, target: Target) -> str | None:
    """The note that memories in which a module has values have no rate on a target; None where
    all have one. O(instructions)."""
    rates = MemoryRates(target)
    shapes = dict.fromkeys(  # a start has a context in SMEM, which is not moved
        instruction.shape
        for instruction in module.instructions()
        if instruction.opcode not in STARTS
    )
    rates.seconds((shape, 0) for shape in shapes)
    if not rates.without_rate:
        return None
    names = " and ".join(sorted(rates.without_rate, reverse=True))
    return (
        f"the target has no rate of {names}: what is there is read and written in no time, and a "
        "move takes the time of the other end"
    )
