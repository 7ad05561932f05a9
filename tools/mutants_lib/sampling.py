"""The mutants that are tried: drawn by seed, each line of the code with the same chance."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from mutants_lib.operators import Mutant


def draw(
    rooms: Mapping[str, Sequence[Mutant]], lines: Mapping[str, int], seed: int, count: int
) -> dict[str, list[Mutant]]:
    """`count` mutants, from each room in proportion to its lines; a larger count draws more.

    A share is rounded up. Less than that where a room has no more.
    """
    total = sum(lines.values())
    return {
        room: list(islice(_order(mutants, f"{seed} {room}"), -(-count * lines[room] // total)))
        for room, mutants in rooms.items()
    }


def _order(mutants: Sequence[Mutant], seed: str) -> Iterator[Mutant]:
    """All mutants in random order: one of each line, then another of each line, and so on."""
    dice = random.Random(seed)
    by_line: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in mutants:
        by_line.setdefault((mutant.file, mutant.line), []).append(mutant)
    lines = list(by_line.values())
    dice.shuffle(lines)
    for line in lines:
        dice.shuffle(line)
    while lines:
        for line in lines:
            yield line.pop()
        lines = [line for line in lines if line]
