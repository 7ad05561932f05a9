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


def best_repeat(labels: Sequence[Hashable]) -> Repeat | None:
    """The repeat that saves most; of equal ones the shortest part, the first one.

    None where nothing is repeated. O(elements · 512), in arrays.
    """
    numbers: dict[Hashable, int] = {}
    coded = np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    best = None
    for length in range(1, min(len(coded) // 2, _LONGEST) + 1):
        if best is not None and len(coded) - length <= best.saved:
            break
        found = _longest(coded, length)
        if found is not None and (best is None or found.saved > best.saved):
            best = found
    return best


def _longest(coded: np.ndarray, length: int) -> Repeat | None:
    """The longest repeat of parts of one length."""
    same = coded[length:] == coded[:-length]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    starts, sizes = edges[::2], edges[1::2] - edges[::2]
    if not sizes.size or sizes.max() < length:
        return None
    at = int(sizes.argmax())
    return Repeat(int(starts[at]), length, int(sizes[at]) // length + 1)
