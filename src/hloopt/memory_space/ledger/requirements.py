"""Places that values have to be in at certain times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from hloopt.memory_space.heap.chunks import Chunk


class Requirement(NamedTuple):
    """A place that is required: a chunk of alternate memory, or default memory for None."""

    chunk: Chunk | None

    @property
    def is_default(self) -> bool:
        return self.chunk is None

    def agrees_with(self, other: Requirement) -> bool:
        if self.chunk is None or other.chunk is None:
            return self.chunk is other.chunk
        return self.chunk.offset == other.chunk.offset


DEFAULT = Requirement(None)


class Contradiction(Exception):
    """A value is required in two places at one time: the buffer has to be done again."""

    def __init__(self, value: int, time: int) -> None:
        super().__init__(value, time)
        self.value, self.time = value, time


@dataclass(slots=True)
class Requirements:
    """Required places, by value and time. What was added since `keep` can be taken back."""

    _at: dict[tuple[int, int], Requirement] = field(default_factory=dict)
    _pending: list[tuple[int, int]] = field(default_factory=list)

    def at(self, value: int, time: int) -> Requirement | None:
        return self._at.get((value, time))

    def add(self, value: int, time: int, required: Requirement) -> None:
        """Require a place. Raises Contradiction where another one is required already."""
        present = self._at.get((value, time))
        if present is None:
            self._at[value, time] = required
            self._pending.append((value, time))
        elif not present.agrees_with(required):
            raise Contradiction(value, time)

    def keep(self) -> None:
        """Keep what is pending for good."""
        self._pending.clear()

    def undo(self) -> None:
        """Take back what was added since `keep`."""
        for key in self._pending:
            del self._at[key]
        self._pending.clear()
