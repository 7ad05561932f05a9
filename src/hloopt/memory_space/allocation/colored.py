"""Buffers that have to be in alternate memory at some time, and the room that is kept for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from hloopt.diagnostics import PassRefused
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.colorings import Colorings
from hloopt.memory_space.allocation.copies import Copies
from hloopt.memory_space.heap.chunks import Chunk, Reservation


@dataclass(slots=True)
class Colored:
    """Reserves room for colored positions and uses until their buffers are placed."""

    copies: Copies
    colorings: Colorings
    reserved: dict[Buffer, list[Reservation]] = field(default_factory=dict)
    """Room for buffers that are not placed yet."""

    def reserve(self, buffers: Iterable[Buffer]) -> None:
        """Reserve room for what is colored alternate. Raises PassRefused where there is none."""
        copies = self.copies
        for buffer in buffers:
            ranges = self.colorings.times(copies.program, buffer.values)
            for start, end in ranges:
                offset = copies.ledger.heap.best_offset(buffer.size, start, end)
                if offset + buffer.size > copies.limit:
                    raise self.not_satisfied(buffer)
                reservation = copies.ledger.heap.take(Chunk(offset, buffer.size), start, end)
                self.reserved.setdefault(buffer, []).append(reservation)

    def give_back(self, value: int) -> None:
        """Free what was reserved for the buffer of a value, as long as the buffer stays placed."""
        copies = self.copies
        buffer = copies.program.buffers.of_value[value]
        for reservation in self.reserved.pop(buffer, ()):
            copies.ledger.heap.give_back(reservation)
            copies.ledger.on_undo(partial(self._reserve, buffer, reservation))

    def _reserve(self, buffer: Buffer, old: Reservation) -> None:
        again = self.copies.ledger.heap.take(old.chunk, old.start, old.end)
        self.reserved.setdefault(buffer, []).append(again)

    def not_satisfied(self, buffer: Buffer) -> PassRefused:
        """The error for a buffer that is demanded in alternate memory and does not fit there."""
        definer = self.copies.program.flow.definer[buffer.values[0]]
        return PassRefused(
            f"'%{definer.name}' requires allocation in the alternate memory, which could not be "
            "satisfied",
            span=definer.parent.module.span_of(definer),
            help="raise max_size_in_bytes, or color less",
        )

    def is_demanded(self, buffer: Buffer) -> bool:
        """Whether a buffer has to be in alternate memory at some time."""
        is_precolored = not self.colorings.precolored.isdisjoint(buffer.values)
        return is_precolored or bool(self.colorings.times(self.copies.program, buffer.values))
