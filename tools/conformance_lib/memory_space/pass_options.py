"""Options of records of memory space assignment as the pass takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance_lib.errors import RecordError
from hloopt.memory_space.heap.repacking import RepackBlock


class FakeRepacker:
    """Moves blocks as it is told, and notes how many of those it got are colocated."""

    def __init__(self, moves: Sequence[Sequence[int]], *, always_modified: bool) -> None:
        self.moves = {(start, old): new for start, old, new in moves}
        self.always_modified = always_modified
        self.colocations: list[int] = []

    def __call__(self, blocks: list[RepackBlock]) -> bool:
        groups = Counter(block.group for block in blocks)
        self.colocations += [1 if b.group is None else groups[b.group] for b in blocks]
        changed = self.always_modified
        for block in blocks:
            new = self.moves.get((block.start, block.offset or 0))
            if new is not None:
                block.offset, changed = new, True
        return changed


def memory_space_options(options: Mapping[str, Any]) -> dict[str, object]:
    """The options with tuples for their outermost lists, and functions for what stands for one.

    Raises RecordError for a repacker that nobody knows.
    """
    found = {name: _as_tuples(value) for name, value in options.items()}
    if "repacker" in options:
        found["repacker"] = _repacker(options["repacker"])
    return found


def _repacker(words: Mapping[str, Any]) -> str | Callable[[list[RepackBlock]], bool]:
    match words.get("kind"):
        case "fake":
            always = words.get("always_modified", False)
            return FakeRepacker(words.get("moves", ()), always_modified=always)
        case "best-fit":
            every = words.get("slice_time_permutations", "all") == "all"
            return "best-fit" if every else "best-fit-few-permutations"
    raise RecordError(f"unknown repacker: {words}")


def _as_tuples(value: object) -> object:
    if isinstance(value, list):
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return value
