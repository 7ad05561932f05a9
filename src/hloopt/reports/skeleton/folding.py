"""Folding of sequences: parts that follow one another several times become one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

_Label = TypeVar("_Label", bound=Hashable)
_LONGEST = 512
"""Elements of a part that is looked for."""


class Repeat(NamedTuple):
    """A part of a sequence, from `start`, of `length` elements, `repetitions` times."""

    start: int
    length: int
    repetitions: int

    @property
    def saved(self) -> int:
        """The elements that are no longer there once it is folded."""
        return self.length * (self.repetitions - 1)


def best_repeats(labels: Sequence[Hashable]) -> list[Repeat]:
    """The repeat that saves most, of equal ones the shortest part, and all that are as long and
    save as much without overlapping; first ones first.

    Empty where nothing is repeated. O(elements · 512), in arrays.
    """
    numbers: dict[Hashable, int] = {}
    coded = np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    best: list[Repeat] = []
    for length in range(1, min(len(coded) // 2, _LONGEST) + 1):
        if best and len(coded) - length <= best[0].saved:
            break
        found = _longest(coded, length)
        if found and (not best or found[0].saved > best[0].saved):
            best = found
    return best


def _longest(coded: np.ndarray, length: int) -> list[Repeat]:
    """The longest repeats of parts of one length, first ones first."""
    same = coded[length:] == coded[:-length]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    starts, sizes = edges[::2], edges[1::2] - edges[::2]
    if not sizes.size or sizes.max() < length:
        return []
    repetitions = sizes // length + 1
    found: list[Repeat] = []
    end = 0
    for start in starts[repetitions == repetitions.max()]:
        if start >= end:
            found.append(Repeat(int(start), length, int(repetitions.max())))
            end = int(start) + length * found[0].repetitions
    return found
